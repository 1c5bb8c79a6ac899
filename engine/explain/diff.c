#include "engine/explain/diff.h"

#include <math.h>
#include <string.h>

static struct adv_term_move *find(struct adv_term_move *moves, int *count, const char *name)
{
    for (int i = 0; i < *count; i++)
        if (!strcmp(moves[i].name, name)) return &moves[i];
    if (*count == ADV_LIMIT_LEDGER_TERMS) return NULL;
    moves[*count] = (struct adv_term_move){name, 0, 0};
    return &moves[(*count)++];
}

static double change(const struct adv_term_move *move)
{
    return fabs(move->after_s - move->before_s);
}

int adv_diff_terms(const struct adv_ledger *before, const struct adv_ledger *after,
                   struct adv_term_move moves[ADV_LIMIT_LEDGER_TERMS])
{
    int count = 0;
    for (int i = 0; i < before->terms_count; i++) {
        struct adv_term_move *move = find(moves, &count, before->terms[i].name);
        if (move) move->before_s += before->terms[i].exposed_seconds;
    }
    for (int i = 0; i < after->terms_count; i++) {
        struct adv_term_move *move = find(moves, &count, after->terms[i].name);
        if (move) move->after_s += after->terms[i].exposed_seconds;
    }
    for (int i = 1; i < count; i++) {
        struct adv_term_move moved = moves[i];
        int at = i;
        while (at > 0 && change(&moves[at - 1]) < change(&moved)) {
            moves[at] = moves[at - 1];
            at--;
        }
        moves[at] = moved;
    }
    return count;
}

double adv_diff_group_s(const struct adv_ledger *ledger, unsigned groups)
{
    double seconds = 0;
    for (int i = 0; i < ledger->terms_count; i++)
        if (ledger->terms[i].group & groups) seconds += ledger->terms[i].exposed_seconds;
    return seconds;
}
