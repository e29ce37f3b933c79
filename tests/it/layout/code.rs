//! Rust as a list of words and signs: enough to see paths, with comments and the insides of texts left out. Not a parser;
//! it relies on the sources being formatted and compiling.

/// A word (`[A-Za-z0-9_]+`) or a single other character that is not blank.
pub(super) fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = chars.get(at).copied() {
        let next = chars.get(at + 1).copied();
        at = match (c, next) {
            ('/', Some('/')) => skip_until(&chars, at, |rest| rest.first() == Some(&'\n')),
            ('/', Some('*')) => skip_block(&chars, at),
            ('r', Some('"' | '#')) if raw_hashes(&chars, at + 1).is_some() => {
                let hashes = raw_hashes(&chars, at + 1).unwrap_or_default();
                let body = at + 2 + hashes;
                let ends = |rest: &[char]| {
                    rest.first() == Some(&'"')
                        && rest.iter().skip(1).take_while(|c| **c == '#').count() >= hashes
                };
                skip_until(&chars, body, ends) + 1 + hashes
            }
            ('"', _) => skip_quoted(&chars, at + 1, '"'),
            ('\'', Some('\\')) => skip_quoted(&chars, at + 1, '\''),
            ('\'', Some(_)) if chars.get(at + 2) == Some(&'\'') => at + 3,
            (c, _) if is_word(c) => {
                let end = skip_until(&chars, at, |rest| {
                    !rest.first().is_some_and(|c| is_word(*c))
                });
                tokens.push(chars.iter().skip(at).take(end - at).collect());
                end
            }
            (c, _) => {
                if !c.is_whitespace() {
                    tokens.push(c.to_string());
                }
                at + 1
            }
        };
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The first place from `at` on where `stop` holds, or the end.
fn skip_until(chars: &[char], at: usize, stop: impl Fn(&[char]) -> bool) -> usize {
    (at..chars.len())
        .find(|place| chars.get(*place..).is_some_and(&stop))
        .unwrap_or(chars.len())
}

/// Behind a block comment, nested ones included.
fn skip_block(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < chars.len() {
        match (chars.get(at), chars.get(at + 1)) {
            (Some('/'), Some('*')) => {
                depth += 1;
                at += 2;
            }
            (Some('*'), Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

/// How many `#` stand between `r` and the quote of a raw text; `None` when it is none, such as `r#type`.
fn raw_hashes(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars.iter().skip(at).take_while(|c| **c == '#').count();
    (chars.get(at + hashes) == Some(&'"')).then_some(hashes)
}

/// Behind the closing quote.
fn skip_quoted(chars: &[char], mut at: usize, quote: char) -> usize {
    while let Some(c) = chars.get(at) {
        match c {
            '\\' => at += 2,
            c if *c == quote => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// Every path that begins with `root` (`crate`, `std`), without it, `use` groups spelled out: `crate::{a, b::{c, d}}` gives
/// `a`, `b::c` and `b::d`.
pub(super) fn paths_from(tokens: &[String], root: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token == root && is_path_sign(tokens, at + 1) {
            expand(tokens, at + 3, &[], &mut paths);
        }
    }
    paths
}

/// Every path that climbs `depth` times with `super`, without the climb. `depth` is at least 1.
pub(super) fn paths_above(tokens: &[String], depth: usize) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for at in 0..tokens.len() {
        let is_step = |at: usize| {
            tokens.get(at).is_some_and(|token| token == "super") && is_path_sign(tokens, at + 1)
        };
        // A chain is looked at from its first link only, and one longer than `depth` cannot leave this file.
        let is_first = at < 3 || !is_step(at - 3);
        let climbs = (0..depth).all(|step| is_step(at + 3 * step));
        if is_first && climbs && !is_step(at + 3 * depth) {
            expand(tokens, at + 3 * depth, &[], &mut paths);
        }
    }
    paths
}

fn is_path_sign(tokens: &[String], at: usize) -> bool {
    [at, at + 1]
        .iter()
        .all(|place| tokens.get(*place).is_some_and(|token| token == ":"))
}

/// Collects the paths of a `use` tree that begins at `at`; gives the place behind it.
fn expand(tokens: &[String], at: usize, prefix: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let Some(token) = tokens.get(at) else {
        return at;
    };
    if token == "{" {
        let mut at = at + 1;
        while tokens.get(at).is_some_and(|token| token != "}") {
            at = expand(tokens, at, prefix, paths);
            if tokens.get(at).is_some_and(|token| token == ",") {
                at += 1;
            } else if tokens.get(at).is_some_and(|token| token == "as") {
                at += 2;
            }
        }
        return at + 1;
    }
    let mut path = prefix.to_vec();
    path.push(token.clone());
    if is_path_sign(tokens, at + 1) {
        return expand(tokens, at + 3, &path, paths);
    }
    paths.push(path);
    at + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crate_paths(text: &str) -> Vec<String> {
        let paths = paths_from(&tokens(text), "crate");
        paths.iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn groups_are_spelled_out() {
        let text = "use crate::{a, b::{self, c as d}, e::*,};\npub(crate) fn f() { crate::g::h() }";
        let paths = crate_paths(text);
        assert_eq!(paths, ["a", "b::self", "b::c", "e::*", "g::h"]);
    }

    #[test]
    fn comments_and_texts_are_left_out() {
        let text = r##"
            // crate::a
            /* /* crate::b */ crate::c */
            let x = "\" crate::d"; let y = r#"crate::e " "#; let z = '"'; let q = '\'';
            fn f<'a>(s: &'a str) { crate::g() }
        "##;
        assert_eq!(crate_paths(text), ["g"]);
    }
}
