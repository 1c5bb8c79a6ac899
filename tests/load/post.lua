-- Posts the file named on wrk's command line as JSON: wrk -s post.lua URL -- FILE
function init(args)
    local file = assert(io.open(args[1], "rb"))
    wrk.method = "POST"
    wrk.body = file:read("*a")
    wrk.headers["Content-Type"] = "application/json"
    file:close()
end

-- "@count@" in the file is another number each time.
local count = 0
function request()
    if not wrk.body:find("@count@", 1, true) then return wrk.format() end
    count = count + 1
    return wrk.format(nil, nil, nil, (wrk.body:gsub("@count@", tostring(wrk.thread) .. tostring(count))))
end
