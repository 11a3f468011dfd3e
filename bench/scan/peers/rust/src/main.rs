//! The regex crate as a peer of bench/scan: RegexSet tells which rules match a text, find_iter of those where.
//! Speaks the protocol of peers/README.md.

use std::io::{self, BufRead, Write};
use std::time::Duration;

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

fn read(path: &str, key: &str) -> Vec<String> {
    std::fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap()[key].as_str().unwrap().to_string())
        .collect()
}

/// RE2 takes \b, \w, \d and \s as ASCII and the rest as Unicode; so do these.
fn as_re2(rule: &str) -> String {
    let (mut out, mut class, mut chars) = (String::new(), false, rule.chars());
    while let Some(c) = chars.next() {
        let ascii = match c {
            '\\' => match chars.next().unwrap() {
                'b' => "(?-u:\\b)",
                'w' => "0-9A-Za-z_",
                'd' => "0-9",
                's' => "\\t\\n\\f\\r ",
                'S' => "^\\t\\n\\f\\r ",
                other => {
                    out.push(c);
                    out.push(other);
                    continue;
                }
            },
            _ => {
                class = c == '[' || class && c != ']';
                out.push(c);
                continue;
            }
        };
        if class || ascii.starts_with('(') {
            out.push_str(ascii);
        } else {
            out.push_str(&format!("[{ascii}]"));
        }
    }
    out
}

fn clock(id: libc::clockid_t) -> Duration {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(id, &mut t) };
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let rules: Vec<String> = read(&args[1], "re").iter().map(|r| as_re2(r)).collect();
    let texts = [read(&args[2], "text"), read(&args[3], "text")];
    let began = clock(libc::CLOCK_PROCESS_CPUTIME_ID);
    let set: RegexSet = RegexSetBuilder::new(&rules)
        .case_insensitive(true)
        .size_limit(1 << 30)
        .dfa_size_limit(1 << 28)
        .build()
        .unwrap();
    let each: Vec<Regex> = rules
        .iter()
        .map(|r| RegexBuilder::new(r).case_insensitive(true).size_limit(1 << 28).build().unwrap())
        .collect();
    let compiled = clock(libc::CLOCK_PROCESS_CPUTIME_ID) - began;
    let out = io::stdout();
    writeln!(out.lock(), "{{\"name\":\"Rust regex 1.11.1, RegexSet + find_iter\",\"compile_ms\":{:.0}}}", compiled.as_secs_f64() * 1e3).unwrap();
    for line in io::stdin().lock().lines() {
        let line = line.unwrap();
        let f: Vec<usize> = line.split(' ').map(|n| n.parse().unwrap()).collect();
        let (mut pairs, mut matches) = (0, 0);
        let begin = clock(libc::CLOCK_PROCESS_CPUTIME_ID);
        for text in &texts[f[0]][f[1]..f[2]] {
            for i in set.matches(text).iter() {
                pairs += 1;
                matches += each[i].find_iter(text).count();
            }
        }
        let used = clock(libc::CLOCK_PROCESS_CPUTIME_ID) - begin;
        writeln!(out.lock(), "{{\"cpu_ns\":{},\"pairs\":{pairs},\"matches\":{matches}}}", used.as_nanos()).unwrap();
    }
}
