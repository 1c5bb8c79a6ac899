-- Posts the file named on wrk's command line as JSON: wrk -s post.lua URL -- FILE
function init(args)
    local file = assert(io.open(args[1], "rb"))
    wrk.method = "POST"
    wrk.body = file:read("*a")
    wrk.headers["Content-Type"] = "application/json"
    file:close()
end
