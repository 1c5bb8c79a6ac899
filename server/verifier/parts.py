"""Which part of the predicted memory a buffer of XLA belongs to, by its shape and the operation that made it.

The names are those of an estimate's hbm_parts. What no rule knows has no part: it is shown by itself, never guessed.
"""
import re

ROUTED = re.compile(r"sort_activations|ffn_act|ragged|weight_sum|unsort|gmm|EBCM|EBCH|MoeBlock|all_to_all")


def holds_sequences(dims, sizes):
    """Whether one dimension is a device's part of a sequence."""
    length, shards = sizes.get("max_target_length"), sizes.get("ici_context_parallelism") or 1
    return bool(length) and (length in dims or length // max(1, shards) in dims)


def part_of(shape, operation, sizes):
    """The part's name or None. `sizes`: vocab_size, emb_dim and num_decoder_layers of the model, max_target_length and
    ici_context_parallelism of the plan. A stack over the layers may be named after the zeros that it starts from."""
    dims = [int(n) for n in re.findall(r"\d+", shape.partition("[")[2].partition("]")[0])]
    if not dims:
        return None
    vocab, emb, layers = sizes.get("vocab_size"), sizes.get("emb_dim"), sizes.get("num_decoder_layers")
    of_weights = "state[" in operation or ".value" in operation
    backward = "transpose(jvp" in operation
    if vocab and vocab in dims:
        return "head_weights" if len(dims) == 2 and emb in dims else "logits"
    if of_weights:
        return "weight_copies"
    if layers and layers > 1 and layers in dims[:2] and len(dims) > 2:
        if holds_sequences(dims, sizes):
            return "saved_activations"
        starts = operation.startswith("broadcast")
        return "gradients" if backward or starts else "saved_activations" if "jvp" in operation else None
    if "all-gather" in operation or "all_gather" in operation:
        return "gathered_weights"
    if "checkpoint" in operation or "while/body" in operation:
        return "routed_working_set" if ROUTED.search(operation) else "layer_working_set"
    if operation and emb and dims[-1] == emb:
        return "hidden_states"
    return None


def totals(buffers):
    """[{name, bytes}] of the buffers, largest first; those without a part come as "other"."""
    sums = {}
    for buffer in buffers:
        name = buffer["part"] or "other"
        sums[name] = sums.get(name, 0) + buffer["bytes"]
    return [{"name": n, "bytes": b} for n, b in sorted(sums.items(), key=lambda x: -x[1])]
