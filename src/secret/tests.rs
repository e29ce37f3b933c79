//! Every form of a secret is found, and nothing else is touched.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose};
use proptest::prelude::*;

use super::anchors::{ENCODED, encoded, for_urls};
use super::*;

/// The text with the secret cut out.
fn cut(text: &str, secret: &Secret) -> String {
    let mut text = text.to_owned();
    Cutter::new(&[secret]).cut(&mut text);
    text
}

#[test]
fn debug_shows_nothing() {
    assert_eq!(format!("{:?}", Secret::new("hunter2-hunter2")), "[secret]");
}

#[test]
fn every_form_is_cut() {
    let secret = Secret::new("se\"cret/with-quote");
    let encoded = general_purpose::STANDARD.encode(secret.expose());
    for form in [
        "se\"cret/with-quote",
        "se\\\"cret/with-quote",
        "se\\\"cret\\/with-quote",
        encoded.as_str(),
    ] {
        assert_eq!(
            cut(&format!("a {form} b"), &secret),
            format!("a {CUT_MARK} b"),
            "form {form}"
        );
    }
}

#[test]
fn a_secret_within_something_encoded_is_cut() {
    for plain in ["0123456789abcdef0123456789abcdef", "se\"cret/??>>ÿ"] {
        let secret = Secret::new(plain);
        for (before, behind) in [
            ("", ""),
            ("u:", ""),
            ("", "!"),
            ("u", "vw"),
            ("{\"t\":\"", "\"}"),
        ] {
            let whole = format!("{before}{plain}{behind}");
            for alphabet in [general_purpose::STANDARD, general_purpose::URL_SAFE_NO_PAD] {
                let left = cut(&alphabet.encode(&whole), &secret);
                let letters = left.replace(CUT_MARK, "");
                let kept = whole.len() - plain.len();
                assert!(left.contains(CUT_MARK), "{whole}: {left}");
                // What a letter at the seam tells of the secret is less than a byte at either end.
                assert!(letters.len() <= kept * 8 / 6 + 6, "{whole}: {left}");
            }
        }
    }
}

/// As forms, addresses, pages and documents of others may spell it, each letter by itself another way.
#[test]
fn every_spelling_is_cut_whole() {
    let plain = "shop-7:se+cret/of=the~shop";
    let secret = Secret::new(plain);
    let encoded = general_purpose::STANDARD.encode(plain);
    for form in [
        plain.to_owned(),
        hex(plain),
        hex(plain).to_uppercase(),
        percent(plain, |byte| !byte.is_ascii_alphanumeric(), "%"),
        percent(plain, |_| true, "%").to_lowercase(),
        percent(plain, |byte| byte == b':', "%25"),
        percent(plain, |byte| byte == b':', "%2525"),
        percent(&encoded, |byte| !byte.is_ascii_alphanumeric(), "%"),
        encoded.replace('/', "\\/"),
        plain
            .replace(':', "\\u003A")
            .replace('/', "\\/")
            .replace('+', "\\\\u002b"),
        plain
            .replace(':', "&#58;")
            .replace('/', "&#x2F;")
            .replace('+', "&amp;#43;"),
        plain.replace('s', "\\x73"),
    ] {
        let told = cut(&format!("(is {form}.)"), &secret);
        assert_eq!(told, format!("(is {CUT_MARK}.)"), "{form}");
    }
    let mut folded = format!("x-{}-is", plain.to_uppercase());
    Cutter::new(&[&secret]).cut_folded(&mut folded);
    assert_eq!(folded, format!("x-{CUT_MARK}-is"));
    let others = "100% of \\u0441\\u043b\\u043e\\u0432\\u0430 at https:\\/\\/a.example\\/?a=%20&b=shop-7%3Ase";
    assert_eq!(cut(others, &secret), others);
}

#[test]
fn hex_digits_may_have_any_case() {
    let secret = Secret::new("JKLMNO-shop-7");
    let digits = "4a4B4c4D4e4F2D73686f702D37";
    assert_eq!(
        cut(&format!("is {digits}."), &secret),
        format!("is {CUT_MARK}.")
    );
}

/// The work is the same for each letter: a run of this length took minutes when all of it was looked at from each place.
#[test]
fn backslashes_in_a_row_are_looked_at_in_part_and_stay_in_pairs() {
    let secret = Secret::new("Aa-secret-7");
    let many = "\\".repeat(1_000_000);
    assert_eq!(cut(&many, &secret), many);
    for run in [1, 2, 63, 64, 65, 66, 501, 502] {
        let text = format!("{}u0041a-secret-7", "\\".repeat(run));
        let told = cut(&text, &secret);
        let left = told.strip_suffix(CUT_MARK).expect("cut");
        assert!(
            left.len().is_multiple_of(2) && left.len() < run,
            "{run}: {told}"
        );
    }
}

#[test]
fn several_secrets_are_cut_from_one_text() {
    let (one, other) = (Secret::new("one-secret-1"), Secret::new("other-secret-2"));
    let mut text = "a other-secret-2 b one-secret%2d1 c".to_owned();
    Cutter::new(&[&one, &other]).cut(&mut text);
    assert_eq!(text, "a [cut] b [cut] c");
}

#[test]
fn an_earlier_token_stays_hidden_and_their_number_is_bounded() {
    let hidden = Hidden::default();
    for number in [0, 1, 1, 2, 3, 4, 5, 6, 7, 8] {
        hidden.add(&Secret::new(format!("token-{number}")));
    }
    let all = hidden.clone().all();
    let shown: Vec<&str> = all.iter().map(Secret::expose).collect();
    assert_eq!(shown.len(), 8);
    assert_eq!(
        (shown.first(), shown.last()),
        (Some(&"token-8"), Some(&"token-1"))
    );
}

#[test]
fn a_short_secret_cuts_no_words() {
    assert_eq!(cut("paid", &Secret::new("paid")), "paid");
}

/// As it is cut by the whole search, whatever the text's anchors say.
fn searched(text: &str, secret: &str) -> String {
    if secret.len() < SHORTEST {
        text.to_owned()
    } else {
        spelled::without(text, [secret].into_iter(), false)
    }
}

/// One layer of JSON around it, spelt one of the ways there are.
fn layer(text: &str, slashes: bool) -> String {
    let escaped = serde_json::Value::from(text).to_string();
    if slashes {
        escaped.replace('/', "\\/")
    } else {
        escaped
    }
}

/// A secret in a form, beside others that a document may hold.
fn piece() -> impl Strategy<Value = u8> {
    0..20_u8
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").expect("a String takes any text");
        digits
    })
}

/// The bytes that are meant written as `%XX`, or with another sign.
fn percent(text: &str, is_meant: impl Fn(u8) -> bool, sign: &str) -> String {
    let write = |byte: u8| {
        if is_meant(byte) || !byte.is_ascii() {
            format!("{sign}{byte:02X}")
        } else {
            char::from(byte).to_string()
        }
    };
    text.bytes().map(write).collect()
}

/// What stands in a text for this number.
fn spelt(number: u8, secret: &str, before: &str) -> String {
    let units = |upper: bool| -> String {
        secret
            .encode_utf16()
            .map(|unit| {
                if upper {
                    format!("\\u{unit:04X}")
                } else {
                    format!("\\u{unit:04x}")
                }
            })
            .collect()
    };
    let whole = format!("{before}{secret}!");
    match number {
        0 => secret.to_owned(),
        1 => layer(secret, false),
        2 => layer(secret, true),
        3 => layer(&layer(secret, false), false),
        4 => layer(&layer(&layer(secret, true), false), true),
        5 => general_purpose::STANDARD.encode(secret),
        6 => general_purpose::URL_SAFE.encode(&whole),
        7 => general_purpose::STANDARD_NO_PAD.encode(&whole),
        8 => units(false),
        9 => layer(&units(true), false),
        10 => layer(&layer(&units(false), false), false),
        14 => hex(secret),
        15 => hex(&whole).to_uppercase(),
        16 => percent(secret, |_| true, "%"),
        17 => percent(&whole, |byte| !byte.is_ascii_alphanumeric(), "%25")
            .to_lowercase()
            .replace(&secret.to_lowercase(), secret),
        18 => percent(
            &general_purpose::STANDARD.encode(&whole),
            |byte| !byte.is_ascii_alphanumeric(),
            "%",
        ),
        19 => secret.chars().fold(String::new(), |mut text, letter| {
            write!(text, "&#{};", u32::from(letter)).expect("a String takes any text");
            text
        }),
        // Almost it.
        11 => secret.chars().skip(1).collect(),
        12 => secret.chars().rev().collect(),
        _ => before.to_owned(),
    }
}

proptest! {
    #[test]
    fn six_bytes_are_encoded_as_by_everybody(bytes: [u8; ENCODED]) {
        let wanted = general_purpose::STANDARD.encode(bytes);
        prop_assert_eq!(wanted.as_bytes(), encoded(bytes));
        let wanted = general_purpose::URL_SAFE.encode(bytes);
        prop_assert_eq!(wanted.as_bytes(), encoded(bytes).map(for_urls));
    }

    #[test]
    fn what_the_anchors_say_is_what_the_search_finds(
        secret in prop_oneof![
            "[A-Za-z0-9_-]{43}",
            "[A-Za-z0-9_-]{8,12}",
            "[A-Za-z0-9+/]{8,43}",
            "[A-Za-z0-9+]{8,43}",
            "\\PC{6,40}",
            "[a-c\"/\\\\\n?>~\u{e9}\u{416}]{8,30}",
        ],
        before in "[a-z\"\\\\:/\u{416}]{0,5}",
        pieces in proptest::collection::vec(piece(), 0..4),
    ) {
        let text: Vec<String> = pieces.iter().map(|number| spelt(*number, &secret, &before)).collect();
        let text = text.join(&before);
        let wanted = searched(&text, &secret);
        let secret = Secret::new(secret);
        let mut cut = text.clone();
        Cutter::new(&[&secret]).cut(&mut cut);
        prop_assert_eq!(cut, wanted, "in {}", text);
    }
}

/// Whether the search would look into the text.
fn may_be_in(secret: &str, text: &str) -> bool {
    let secret = Secret::new(secret);
    let cutter = Cutter::new(&[&secret]);
    assert!(cutter.anchors.is_some(), "eight letters in a row");
    cutter.may_be_in(text)
}

/// Wherever a form begins in a text, and whatever its length is a multiple of, it is met.
#[test]
fn an_anchor_is_met_wherever_it_stands() {
    for secret in [
        "Zm9vYmFyLXNlY3JldC1vZi1hLW5vdGlmaWNhdGlvbi0",
        "0123456+",
        "a?>~b?>~c?>~",
        "abcdefgh\u{1f600}é\u{416}",
    ] {
        for before in 0..300 {
            for number in (0..11).chain(14..20) {
                let form = spelt(number, secret, "u:");
                for behind in ["", "é"] {
                    let text = format!("{}{form}{behind}", ".".repeat(before));
                    assert!(may_be_in(secret, &text), "{before} {form}");
                }
            }
        }
    }
}

/// The anchors spare the search: a text without any is left as it is, one with a piece of the secret is not taken for it.
#[test]
fn a_text_without_the_secret_has_no_anchor_of_it() {
    let secret = "Zm9vYmFyLXNlY3JldC1vZi1hLW5vdGlmaWNhdGlvbi0";
    let document = r#"{"dealRequisites":"{\"a\":\"\\\"\"}","id":"0f2d9b1e-77aa-4c1b","merchantName":"Zm9vYmF"}"#;
    assert!(!may_be_in(secret, document));
}
