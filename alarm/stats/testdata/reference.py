#!/usr/bin/env python3
"""Writes reference.json: values of R's definitions in exact rational or 50-digit arithmetic.

pbinom(k-1, n, p, lower.tail=FALSE) is summed in exact fractions for n <= 3000 (p the double that Go
sees), else summed term by term with 50 digits by mpmath. Wilson intervals are
computed with 50 digits. p.adjust(p, "BH") is its definition on fractions. Needs mpmath (1.3).
"""
import json
from fractions import Fraction as F
from math import comb
from mpmath import mp, mpf, sqrt, nstr, log, exp, loggamma

mp.dps = 50

def frac(x):
    return nstr(mpf(x.numerator) / mpf(x.denominator), 20)

def tail(k, n, p):
    if n <= 3000:
        p = F(p)  # exactly the double
        # integer arithmetic over one denominator
        a, d = p.numerator, p.denominator
        b = d - a
        lo, hi = (k, n + 1) if 2 * k > n else (0, k)
        s = sum(comb(n, i) * a**i * b**(n - i) for i in range(lo, hi))
        s = F(s, d**n)
        return frac(s if lo == k else 1 - s)
    p, q = mpf(p), 1 - mpf(p)
    term = exp(loggamma(n + 1) - loggamma(k + 1) - loggamma(n - k + 1) + k * log(p) + (n - k) * log(q))
    if k > n * p:  # away from the mean, until nothing is added in 50 digits
        s = mpf(0)
        for i in range(k, n + 1):
            s += term
            term *= (n - i) / mpf(i + 1) * p / q
            if term < s * mpf(10)**-48:
                break
        return nstr(s, 20)
    s = mpf(0)
    for i in range(k - 1, -1, -1):
        term *= (i + 1) / mpf(n - i) * q / p
        s += term
        if term < s * mpf(10)**-48:
            break
    return nstr(1 - s, 20)

tails = []
for n, p, ks in [
    (1, .5, [1]), (10, .5, [1, 5, 6, 10]), (20, .05, [1, 2, 5, 10, 20]), (30, .005, [1, 3, 4, 10]), (100, .005, [3, 6, 20, 60]),
    (100, .2, [10, 20, 21, 40, 90]), (480, .005, [1, 3, 10, 15, 60, 300]), (500, .005, [11, 40]), (925, .75, [682, 700, 750, 900]),
    (2000, .005, [10, 11, 25, 100, 500]), (2000, .002, [4, 20, 200]), (3000, .3, [850, 900, 950, 1200, 2000]),
    (100000, .005, [450, 500, 501, 600, 1000, 2000]), (1000000, .002, [1900, 2000, 2100, 3000]), (1000000, .3, [299000, 300000, 301000, 310000]),
    (10000000, .08, [799000, 801000, 806000]), (250, 1e-6, [1, 2, 10]), (50, .999, [40, 49, 50]),
]:
    for k in ks:
        tails.append([k, n, p, tail(k, n, p)])

def wilson(k, n, z):
    k, n, z = mpf(k), mpf(n), mpf(z)
    p = k / n
    h = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    m, s = p + z * z / (2 * n), 1 + z * z / n
    return [nstr((m - h) / s, 20), nstr((m + h) / s, 20)]

wilsons = [[k, n, z] + wilson(k, n, z) for z in (1.959963984540054, 3.09, 1.644853626951473)
           for k, n in [(1, 2), (1, 29), (15, 148), (81, 263), (10, 25), (5, 250), (1, 480), (60, 10000), (1000000, 3000000)]]

def bh(ps):
    m = len(ps)
    order = sorted(range(m), key=lambda i: ps[i])
    out, least = [None] * m, F(1)
    for r in range(m, 0, -1):
        i = order[r - 1]
        least = min(least, F(ps[i]) * m / r)
        out[i] = least
    return [frac(x) for x in out]

families = [
    [.0001, .0004, .0019, .0095, .0201, .0278, .0298, .0344, .0459, .3240, .4262, .5719, .6528, .7590, 1.0],  # BH 1995, section 3.2
    [.01, .02, .03, .04, .05], [.5], [.04, .04, .04, 1e-12, 1.0, .2], [1e-300, .9, 1e-5, .3, .3],
]
json.dump({"tail": tails, "wilson": wilsons, "bh": [[f, bh(f)] for f in families]}, open("reference.json", "w"), indent=0)
