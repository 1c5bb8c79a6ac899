#include "engine/maxtext/oom_message.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* In this order: the first with a word that is in the operator or the allocation. */
static const struct rule {
    const char *words[4], *part;
    const char *keys[ADV_LIMIT_OOM_KEYS];
} rules[] = {
    {{"logits", "cross_entropy"},
     "logits",
     {"num_vocab_tiling", "per_device_batch_size", "ici_tensor_parallelism"}},
    {{"token_embedder"}, "embedding", {"use_iota_embed", "ici_fsdp_parallelism", "ici_tensor_parallelism"}},
    {{"opt_state", "adam"},
     "weights_and_optimizer_state",
     {"optimizer_memory_host_offload", "ici_fsdp_parallelism", "mu_dtype"}},
    {{"all-gather", "all_gather"}, "gathered_weights", {"ici_tensor_parallelism", "scan_layers"}},
    {{"splash", "flash"},
     "attention",
     {"sa_block_q", "sa_block_kv", "ici_context_parallelism", "per_device_batch_size"}},
    {{"attention"},
     "attention",
     {"attention", "remat_policy", "ici_context_parallelism", "per_device_batch_size"}},
    {{"moe", "gmm"}, "experts", {"remat_policy", "ici_expert_parallelism", "per_device_batch_size"}},
    {{"mlp"}, "mlp_activations", {"remat_policy", "per_device_batch_size", "ici_tensor_parallelism"}},
    {{"checkpoint", "remat", "while"},
     "saved_activations",
     {"remat_policy", "per_device_batch_size", "gradient_accumulation_steps"}},
    {{"transpose(jvp"}, "gradients", {"gradient_accumulation_steps", "ici_fsdp_parallelism", "grad_dtype"}},
    {{"argument", "parameter"},
     "weights_and_optimizer_state",
     {"optimizer_memory_host_offload", "ici_fsdp_parallelism", "mu_dtype"}},
};

static const char *const hbm_keys[ADV_LIMIT_OOM_KEYS] = {
    "remat_policy", "per_device_batch_size", "ici_fsdp_parallelism", "optimizer_memory_host_offload"};
static const char *const host_keys[ADV_LIMIT_OOM_KEYS] = {"optimizer_memory_host_offload",
                                                          "parameter_memory_host_offload", "remat_policy"};
static const char *const attention_keys[ADV_LIMIT_OOM_KEYS] = {
    "sa_block_q", "sa_block_kv", "sa_block_kv_compute", "sa_block_q_dkv", "sa_block_kv_dkv"};
static const char *const attention_tables[ADV_LIMIT_OOM_KEYS] = {
    "sa_block_q", "sa_block_kv", "sa_block_q_dkv", "sa_block_kv_dkv", "ici_context_parallelism"};

/* The tiles of a grouped matmul and of its two backward passes. */
#define GMM_PASS(pass)                                                                                       \
    {                                                                                                        \
        "wi_tile_" pass "_batch_seq", "wi_tile_" pass "_embed_dim", "wi_tile_" pass "_mlp_dim",              \
            "wo_tile_" pass "_batch_seq", "wo_tile_" pass "_embed_dim", "wo_tile_" pass "_mlp_dim"           \
    }
static const char *const gmm_keys[ADV_LIMIT_OOM_KEYS] = GMM_PASS("fwd");
static const char *const gmm_dlhs_keys[ADV_LIMIT_OOM_KEYS] = GMM_PASS("dlhs");
static const char *const gmm_drhs_keys[ADV_LIMIT_OOM_KEYS] = GMM_PASS("drhs");
static const char *const gmm_tables[ADV_LIMIT_OOM_KEYS] = {
    "wi_tile_fwd_batch_seq",  "wo_tile_fwd_batch_seq",  "wi_tile_dlhs_batch_seq",
    "wo_tile_dlhs_batch_seq", "wi_tile_drhs_batch_seq", "wo_tile_drhs_batch_seq"};

static const struct {
    const char *space;
    const char *const *keys;
    const char *remedy;
} spaces[] = {
    {"vmem", attention_keys,
     "Smaller blocks of the kernel, or a higher limit: --xla_tpu_scoped_vmem_limit_kib for all kernels of "
     "the program, vmem_limit_bytes of pltpu.CompilerParams for one's own. A limit above the core's VMEM may "
     "compile, and is not promised by the hardware."},
    {"smem", attention_tables,
     "Fewer scalars of the kernel: its tables have an entry for each tile, of masks or of rows of experts, so "
     "that larger blocks, or shorter sequences on each device, make them shorter. In a kernel of one's own, "
     "prefetch fewer scalars."},
    {"host", host_keys,
     "Less on the host: keep some of the offloaded tensors on the device or compute them again, or split "
     "them over more devices by batch, sequence or tensor axes. The limit is of one host, so that fewer "
     "devices a host help too."},
    {"hbm", hbm_keys,
     "Less on each device: compute activations again or offload them, tile the vocabulary, accumulate "
     "gradients over smaller batches, or shard over more devices."},
};

/* "19.59G", "500.0K", "1024 bytes", "17.07M": bytes; NAN when there is no number. Suffixes are binary, as XLA
 * means them. */
static double read_bytes(const char *at)
{
    static const char suffixes[] = "KMGTP";
    char *end = NULL;
    at += strspn(at, " \t:=");
    if (!isdigit((unsigned char)*at)) return (double)NAN;
    const double number = strtod(at, &end);
    const char *suffix = *end ? strchr(suffixes, toupper((unsigned char)*end)) : NULL;
    const double bytes = suffix ? ldexp(number, 10 * (int)(suffix - suffixes + 1)) : number;
    return isfinite(bytes) ? bytes : (double)NAN;
}

/* The number behind the first `word`; NAN without. */
static double bytes_after(const char *text, const char *word)
{
    const char *at = strcasestr(text, word);
    return at ? read_bytes(at + strlen(word)) : (double)NAN;
}

/* Copies the text behind `word` in the line, without quotes. */
static void copy_after(const char *line, size_t length, const char *word, char *copy, size_t size)
{
    const char *at = strcasestr(line, word);
    if (!at || at >= line + length || copy[0]) return;
    at += strlen(word);
    at += strspn(at, " \"");
    size_t count = 0;
    while (at + count < line + length && !strchr("\"\r\n", at[count])) count++;
    (void)snprintf(copy, size, "%.*s", (int)(count < size ? count : size - 1), at);
}

/* "bf16[126,2,8192,16384]": layers, batch, sequence, width. */
static bool is_of_all_layers(const char *shape)
{
    int commas = 0;
    const char *at = strchr(shape, '[');
    for (; at && *at && *at != ']'; at++) commas += *at == ',';
    return commas == 3;
}

static bool is_about(const struct adv_oom_buffer *buffer, const struct rule *rule)
{
    bool any = false;
    for (int i = 0; rule->words[i]; i++)
        any |= strcasestr(buffer->operator_name, rule->words[i]) ||
               strcasestr(buffer->allocation, rule->words[i]);
    return any;
}

static void guess(struct adv_oom_buffer *buffer, bool on_host)
{
    static const char *const offloaded_keys[ADV_LIMIT_OOM_KEYS] = {
        "decoder_layer_input",     "remat_policy",           "per_device_batch_size",
        "ici_context_parallelism", "ici_tensor_parallelism", "gradient_accumulation_steps"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules && !buffer->part; i++) {
        if (!is_about(buffer, &rules[i])) continue;
        buffer->part = rules[i].part;
        memcpy(buffer->keys, rules[i].keys, sizeof buffer->keys);
    }
    if (buffer->part || !on_host || !is_of_all_layers(buffer->shape)) return;
    buffer->part = "saved_activations";
    memcpy(buffer->keys, offloaded_keys, sizeof buffer->keys);
}

static void read_buffers(const char *text, struct adv_oom_message *message)
{
    struct adv_oom_buffer *buffer = NULL;
    for (const char *line = text, *next; *line; line = next) {
        const size_t length = strcspn(line, "\n");
        next = line + length + (line[length] == '\n');
        const char *size = strstr(line, "Size: ");
        const bool begins = size && size < line + length;
        if (begins && message->buffers_count == ADV_LIMIT_OOM_BUFFERS) break;
        if (begins) {
            buffer = &message->buffers[message->buffers_count++];
            buffer->bytes = read_bytes(size + strlen("Size: "));
            buffer->unpadded_bytes = (double)NAN;
        }
        if (!buffer) continue;
        const char *unpadded = strstr(line, "Unpadded size: ");
        if (unpadded && unpadded < line + length)
            buffer->unpadded_bytes = read_bytes(unpadded + strlen("Unpadded size: "));
        copy_after(line, length, "op_name=", buffer->operator_name, sizeof buffer->operator_name);
        copy_after(line, length, "Shape: ", buffer->shape, sizeof buffer->shape);
        copy_after(line, length, "Allocation type: ", buffer->allocation, sizeof buffer->allocation);
    }
    const bool on_host = strcmp(message->space, "host") == 0;
    const bool of_kernel = !on_host && strcmp(message->space, "hbm") != 0;
    for (int i = 0; i < message->buffers_count; i++) {
        guess(&message->buffers[i], on_host);
        if (of_kernel) memcpy(message->buffers[i].keys, message->keys, sizeof message->keys);
    }
}

/* What the text calls the space itself: "memory space hbm", "space=vmem"; NULL: nothing, or what is none. */
static const char *named_space(const char *text)
{
    static const char *const marks[] = {"memory space ", "space="};
    static const char *const names[][2] = {
        {"hbm", "hbm"},          {"device", "hbm"},         {"vmem", "vmem"}, {"smem", "smem"},
        {"pinned_host", "host"}, {"unpinned_host", "host"}, {"host", "host"}};
    for (size_t mark = 0; mark < sizeof marks / sizeof *marks; mark++)
        for (const char *at = text; (at = strcasestr(at, marks[mark]));) {
            at += strlen(marks[mark]);
            const char *name = at + strspn(at, " \"'");
            for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (strncasecmp(name, names[i][0], strlen(names[i][0])) == 0) return names[i][1];
        }
    return NULL;
}

/* Where it names none, by other words: an operator's name may have any of them. */
static const char *find_space(const char *text)
{
    const char *named = named_space(text);
    if (named) return named;
    if (strcasestr(text, "scoped vmem")) return "vmem";
    if (strcasestr(text, "hbm capacity")) return "hbm";
    if (strcasestr(text, "pinned_host") || strcasestr(text, "host buffer") || strcasestr(text, "host memory"))
        return "host";
    return "hbm";
}

/* Of a kernel's memory: the tiles of the kernel that the text names first; attention's where it names none.
 */
static void find_kernel(const char *text, struct adv_oom_message *message)
{
    static const char *const words[] = {"splash", "flash", "attention"};
    const bool of_vmem = strcmp(message->space, "vmem") == 0;
    const char *gmm = strcasestr(text, "gmm");
    if (!gmm || (!of_vmem && strcmp(message->space, "smem") != 0)) return;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *attention = strcasestr(text, words[i]);
        if (attention && attention < gmm) return;
    }
    const char *const *keys = gmm_tables;
    if (of_vmem && (strcasestr(text, "tgmm") || strcasestr(text, "drhs")))
        keys = gmm_drhs_keys;
    else if (of_vmem)
        keys = strcasestr(text, "dlhs") || strcasestr(text, "transpose(jvp") ? gmm_dlhs_keys : gmm_keys;
    memcpy(message->keys, keys, sizeof message->keys);
}

static bool is_oom(const char *text)
{
    static const char *const marks[] = {"ran out of memory", "out of memory", "resource_exhausted",
                                        "exceeded scoped vmem limit", "error allocating"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strcasestr(text, marks[i])) return true;
    return false;
}

/* What PyTorch, CUDA or XLA:GPU say. A log of a TPU may name CUDA as a backend that is not there. */
static bool is_of_gpu(const char *text)
{
    static const char *const marks[] = {
        "cuda out of memory", "cuda_error_out_of_memory", "cudaerror", "cumemalloc",
        "cuda error",         "hip out of memory",        "gpu_bfc",   "(gpu "};
    bool any = false;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) any |= strcasestr(text, marks[i]) != NULL;
    return any && !strcasestr(text, "xla:tpu") && !strcasestr(text, "hbm") && !strcasestr(text, "vmem");
}

/* What the runtime says of a buffer, or of a program that it loads: "There are 15.48G free, 0B reserved, and
 * 14.83G reservable" leaves the last. */
static void read_at_run_time(const char *text, struct adv_oom_message *message)
{
    static const char *const words[] = {"attempting to allocate ", "trying to allocate ",
                                        "attempting to reserve "};
    double wanted = (double)NAN, left = bytes_after(text, "reserved, and ");
    for (size_t i = 0; i < sizeof words / sizeof *words && isnan(wanted); i++)
        wanted = bytes_after(text, words[i]);
    if (isnan(left)) left = bytes_after(text, "there are ");
    message->at_run_time = !isnan(wanted);
    if (message->at_run_time && isnan(message->exceeded_bytes))
        message->exceeded_bytes = isnan(left) ? wanted : wanted - left;
}

static void read_totals(const char *text, struct adv_oom_message *message)
{
    const char *used = strstr(text, "Used ");
    const char *of = used ? strstr(used, " of ") : NULL;
    message->used_bytes = used ? read_bytes(used + 5) : (double)NAN;
    message->limit_bytes = of ? read_bytes(of + 4) : (double)NAN;
    message->exceeded_bytes = bytes_after(text, "capacity by ");
    message->reserved_bytes = bytes_after(text, "reserved ");
    message->program_bytes = bytes_after(text, "    program ");
    message->arguments_bytes = bytes_after(text, "    arguments ");
    if (strcasestr(text, "scoped vmem limit")) {
        message->used_bytes = bytes_after(text, "with size ");
        message->limit_bytes = bytes_after(text, "and limit ");
        message->exceeded_bytes = bytes_after(text, "limit by ");
    }
    read_at_run_time(text, message);
    if (isnan(message->exceeded_bytes)) message->exceeded_bytes = message->used_bytes - message->limit_bytes;
}

adv_code adv_oom_message_read(const char *text, struct adv_oom_message *message, adv_err *err)
{
    memset(message, 0, sizeof *message);
    if (is_of_gpu(text))
        return adv_err_add(err, ADV_E_INVALID, "/message", "paste what XLA says on a TPU",
                           "this is a GPU's out-of-memory message, not one of XLA:TPU");
    if (!is_oom(text))
        return adv_err_add(err, ADV_E_INVALID, "/message",
                           "paste it from \"RESOURCE_EXHAUSTED\" to the end of the list of allocations",
                           "this is no out-of-memory message of XLA");
    message->space = find_space(text);
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        if (strcmp(message->space, spaces[i].space) != 0) continue;
        memcpy(message->keys, spaces[i].keys, sizeof message->keys);
        message->remedy = spaces[i].remedy;
    }
    find_kernel(text, message);
    read_totals(text, message);
    read_buffers(text, message);
    return ADV_OK;
}
