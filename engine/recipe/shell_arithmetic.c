/* shell_arithmetic.c: whole numbers, + - * / % and brackets. */
#include <ctype.h>

#include "engine/recipe/shell_internal.h"

static const long largest = 1000000000000; /* a product of two stays in 64 bits only below 3e9: see times() */
enum { BRACKETS_MAX = 32 };

struct calculation {
    const char *at;
    int brackets;
    bool failed;
};

static long sum(struct calculation *calculation);

static char next(struct calculation *calculation)
{
    while (isspace((unsigned char)*calculation->at)) calculation->at++;
    return *calculation->at;
}

static long number(struct calculation *calculation)
{
    const char first = next(calculation);
    long value = 0;
    if (first == '-' || first == '+') {
        calculation->at++;
        if (++calculation->brackets > BRACKETS_MAX) calculation->failed = true;
        if (calculation->failed) return 0;
        value = number(calculation);
        return first == '-' ? -value : value;
    }
    if (first == '(') {
        calculation->at++;
        if (++calculation->brackets > BRACKETS_MAX) calculation->failed = true;
        if (!calculation->failed) value = sum(calculation);
        if (next(calculation) == ')')
            calculation->at++;
        else
            calculation->failed = true;
        return value;
    }
    for (; isdigit((unsigned char)*calculation->at) && value < largest; calculation->at++)
        value = value * 10 + (*calculation->at - '0');
    if (!isdigit((unsigned char)first) || value >= largest) calculation->failed = true;
    return value;
}

static long times(struct calculation *calculation, long left, long right)
{
    const double product = (double)left * (double)right;
    if (product < (double)largest && product > -(double)largest) return left * right;
    calculation->failed = true;
    return 0;
}

static long product(struct calculation *calculation)
{
    long value = number(calculation);
    for (char sign = next(calculation); !calculation->failed && (sign == '*' || sign == '/' || sign == '%');
         sign = next(calculation)) {
        calculation->at++;
        const long right = number(calculation);
        if (sign == '*')
            value = times(calculation, value, right);
        else if (right == 0)
            calculation->failed = true;
        else
            value = sign == '/' ? value / right : value % right;
    }
    return value;
}

static long sum(struct calculation *calculation)
{
    long value = product(calculation);
    for (char sign = next(calculation); !calculation->failed && (sign == '+' || sign == '-');
         sign = next(calculation)) {
        calculation->at++;
        const long right = product(calculation);
        value += sign == '+' ? right : -right;
        if (value > largest || value < -largest) calculation->failed = true;
    }
    return value;
}

bool adv_shell_arithmetic(const char *text, long *value)
{
    struct calculation calculation = {text, 0, false};
    *value = sum(&calculation);
    return !calculation.failed && next(&calculation) == '\0';
}
