/* bare.c: the HTTP library with nothing behind it: every request is answered with the same bytes. What the
 * daemon's rates are compared with. Prints its port; ends when its standard input does. bare THREADS FILE */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct answer {
    char *body;
    size_t body_bytes;
};

static enum MHD_Result answer_all(void *closure, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_bytes, void **state)
{
    (void)url, (void)method, (void)version, (void)upload;
    const struct answer *answer = closure;
    if (!*state) {
        *state = connection; /* seen; the body follows */
        return MHD_YES;
    }
    if (*upload_bytes) {
        *upload_bytes = 0;
        return MHD_YES;
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(answer->body_bytes, answer->body, MHD_RESPMEM_PERSISTENT);
    if (!response) return MHD_NO;
    (void)MHD_add_response_header(response, "Content-Type", "application/json");
    enum MHD_Result result = MHD_queue_response(connection, 200, response);
    MHD_destroy_response(response);
    return result;
}

int main(int argc, char **argv)
{
    static struct answer answer; /* as long as the process */
    FILE *file = argc == 3 ? fopen(argv[2], "rb") : NULL;
    if (!file || fseek(file, 0, SEEK_END)) return 2;
    answer.body_bytes = (size_t)ftell(file);
    answer.body = malloc(answer.body_bytes + 1);
    if (!answer.body || fseek(file, 0, SEEK_SET) ||
        fread(answer.body, 1, answer.body_bytes, file) != answer.body_bytes)
        return 2;
    (void)fclose(file);
    struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer_all, &answer,
                         MHD_OPTION_SOCK_ADDR, &loopback, MHD_OPTION_THREAD_POOL_SIZE,
                         (unsigned)atoi(argv[1]), MHD_OPTION_CONNECTION_LIMIT, 1024u, MHD_OPTION_END);
    if (!daemon) return 1;
    printf("%u\n", (unsigned)MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    (void)fflush(stdout);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    MHD_stop_daemon(daemon);
    free(answer.body);
    return 0;
}
