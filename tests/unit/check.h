/* check.h: what every C test includes: cmocka and the comparisons it lacks. */
#pragma once

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* |actual - expected| <= rel * |expected| (or <= rel when expected is 0). cmocka 1.1.5 compares floats only.
 */
#define assert_close(actual, expected, rel)                                                                  \
    do {                                                                                                     \
        double a_ = (actual), e_ = (expected), r_ = (rel);                                                   \
        if (!(fabs(a_ - e_) <= r_ * (e_ == 0.0 ? 1.0 : fabs(e_))))                                           \
            fail_msg("%s = %.17g, expected %.17g within %g", #actual, a_, e_, r_);                           \
    } while (0)

/* Runs an array of tests (never a pointer: cmocka would run 0 tests and pass). */
#define run_group(tests) cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL)
