//! Held against the other reading, into a map of values: the same is refused, the same is found, and each value is spelt alike.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::wire::json::{self, object};

/// Both readings of a body must agree in everything.
#[track_caller]
fn check(body: &[u8]) {
    let shown = String::from_utf8_lossy(body);
    let (own, other) = (Fields::read(body), object(body));
    let (own, other) = match (own, other) {
        (Ok(own), Ok(other)) => (own, other),
        (own, other) => {
            assert_eq!(own.map(|_| ()), other.map(|_| ()), "{shown}");
            return;
        }
    };
    let spelt = |(name, _): (&str, &Field<'_>)| {
        let value = other.get(name).expect(name);
        format!("{}:{value}", Value::from(name))
    };
    let wanted: Vec<String> = own.iter().map(spelt).collect();
    assert_eq!(
        own.to_json(),
        format!("{{{}}}", wanted.join(",")),
        "{shown}"
    );
    assert_eq!(own.iter().count(), other.len(), "{shown}");
    for (name, value) in &other {
        let field = own.get(name).expect(name);
        assert_eq!(field.text(), json::text(Some(value)).as_deref(), "{shown}");
        assert_eq!(field.as_str(), value.as_str(), "{shown}");
        assert_eq!(field.to_json(), value.to_string(), "{shown}");
        for pointer in ["/a", "/b/a", "/0", "/1/b", "/00", "/a~1b", "/", "", "a"] {
            let wanted = value.pointer(pointer).and_then(Value::as_str);
            let wanted = wanted.filter(|_| !pointer.is_empty());
            assert_eq!(field.string_at(pointer).as_deref(), wanted, "{shown}");
        }
        let given = !value.is_null() && value != "";
        assert_eq!(field.is_given(), given, "{shown}");
    }
    assert!(own.get("not there").is_none());
    let sorted = Value::Object(other).to_string();
    assert_eq!(own.into_sorted_json(), sorted, "{shown}");
}

/// What a body is kept as.
#[track_caller]
fn kept(body: &str) -> String {
    Fields::read(body.as_bytes()).expect(body).to_json()
}

/// A secret is searched for in the forms that one spelling has: every other one must become it.
#[test]
fn whatever_is_spelt_otherwise_is_written_anew() {
    for own in [
        "{}",
        r#"{"b":"1","a":"\"\\\n\t\r\b\f","c":null,"d":true,"e":false,"\"":"/é\u007f"}"#,
        r#"{"b":{"x":1,"y":[2.50,"/"]},"a":1.0}"#,
    ] {
        let own = own.replace(r"\u007f", "\u{7f}");
        assert_eq!(kept(&own), own);
        assert_eq!(kept(&format!("\u{feff} {own}\n")), own);
        assert_eq!(kept(&Value::from(own.as_str()).to_string()), own);
    }
    for (other, own) in [
        (r#"{ "a":"1"}"#, r#"{"a":"1"}"#),
        (r#"{"a":"1" }"#, r#"{"a":"1"}"#),
        ("{\"a\":\t\"1\",\n\"b\":null}", r#"{"a":"1","b":null}"#),
        (r#"{"a":"\/"}"#, r#"{"a":"/"}"#),
        (r#"{"a":"\u0041"}"#, r#"{"a":"A"}"#),
        (r#"{"\u0061":"1"}"#, r#"{"a":"1"}"#),
        (r#"{"a":"\u000a"}"#, r#"{"a":"\n"}"#),
        // As long, and another.
        (r#"{"a":"\u001F"}"#, r#"{"a":"\u001f"}"#),
        (r#"{"a":"\u001F\n","b":1}"#, r#"{"a":"\u001f\n","b":1}"#),
        (r#"{"a":{"y":1,"x":2}}"#, r#"{"a":{"x":2,"y":1}}"#),
        (r#"{"a":1E3}"#, r#"{"a":1e+3}"#),
    ] {
        assert_eq!(kept(other), own, "{other}");
    }
}

#[test]
fn a_doubled_name_is_found_among_few_and_among_many() {
    for count in [2, 17, FEW, FEW + 1, 1_000] {
        let fields: Vec<String> = (0..count).map(|n| format!("\"n{n}\":{n}")).collect();
        let all = fields.join(",");
        assert!(
            Fields::read(format!("{{{all}}}").as_bytes()).is_ok(),
            "{count}"
        );
        for again in [0, count / 2, count - 1] {
            let body = format!("{{{all},\"n{again}\":0}}");
            let told = Fields::read(body.as_bytes()).map(|_| ());
            assert_eq!(told, Err(ShapeError::DoubledName), "{again} of {count}");
        }
    }
    check(br#"{"":1,"a":2}"#);
    check(br#"{"":1,"":2}"#);
}

#[test]
fn an_object_has_so_many_names_and_no_more() {
    for count in [MOST_NAMES, MOST_NAMES + 1] {
        let wanted = if count > MOST_NAMES {
            Err(ShapeError::NotJson)
        } else {
            Ok(())
        };
        for value in ["1", "null", "{}"] {
            let names: Vec<String> = (0..count).map(|n| format!("\"n{n}\":{value}")).collect();
            let flat = format!("{{{}}}", names.join(","));
            for body in [
                format!("{{\"a\":[{flat},{flat}]}}"),
                Value::from(flat.as_str()).to_string(),
                flat,
            ] {
                let told = Fields::read(body.as_bytes()).map(|_| ());
                assert_eq!(told, wanted, "{count}");
            }
        }
    }
}

/// Else who reads the document again, into a tree of values, would read something else or nothing.
#[test]
fn a_name_that_serde_json_gives_a_meaning_is_in_nothing_that_was_read() {
    for name in ["RawValue", "Number"].map(|name| format!("{PRIVATE}{name}")) {
        for object in [
            format!(r#"{{"{name}":"x"}}"#),
            format!(r#"{{"b":{{"{name}":"x"}}}}"#),
            format!(r#"{{"b":1,"{name}":"5"}}"#),
            format!(r#"{{"amount":{{"{name}":"1500.00"}}}}"#),
            format!(r#"{{"a":[{{"{name}":"5"}}]}}"#),
            format!(r#"{{"a":{{"{}":"5"}}}}"#, name.replace('$', r"\u0024")),
        ] {
            assert_eq!(sorted(&object), None, "{object}");
            assert!(Fields::strict(&object).is_err(), "{object}");
        }
    }
    assert_eq!(sorted(r#"{"$a":1}"#).as_deref(), Some(r#"{"$a":1}"#));
}

#[test]
fn it_reads_what_a_map_reads() {
    for body in [
        r#"{"b":1,"a":"x","":null,"c":[1,{"z":1,"y":2.50}],"d":{"k":1e3},"e":true,"f":"","g":-0.0}"#,
        r#"{"\u0062":"\u0061\"\\\n","a":"é","c":"\ud83d\ude00"}"#,
        "\u{feff} {\"id\":1} ",
        r#""{\"id\":1,\"text\":\"a\\\"b\"}""#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"a":{"b":1,"a":{"d":1,"c":[2,{"y":"1","x":"2"}],"d":[3]},"b":{"a":"x"}}}"#,
        r#"{"a":{"\u0062":1,"a\"":2,"a!":3,"b":"4","":5,"é":6,"a/b":"7"},"c":["0",{"b":"1"}]}"#,
        r#"{"a":[[],{},[{}],"",null,true,-0,-0.0,1E400,18446744073709551616,[1,2]]}"#,
        r#"{"a":1,"a":2,"#,
        r#"{"$serde_json::private::Number":"5","a":{"$serde_json::private::Number":"5"}}"#,
        r#"{"a":"\ud800"}"#,
        "{\"a\":\"\u{1}\"}",
        "{\"a\":\"\u{7f}\u{2028}\"}",
        "{}",
        "",
        " \n",
        "null",
        "[]",
        "\"paid\"",
        "{\"a\":1}{}",
        "{\"a\":1} x",
    ] {
        check(body.as_bytes());
    }
    check(b"{\"a\":\"\xff\"}");
    for depth in [120, 126, 127, 128, 500] {
        check(format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth)).as_bytes());
        check(format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth)).as_bytes());
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[\"\\\\\n/a]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-d\"\\\\]{0,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// What the quick reading finds is what the whole one finds, spelt as it stands. Whether it read it.
#[track_caller]
fn is_quick(text: &str) -> bool {
    let Some(quick) = quick::entries(text) else {
        return false;
    };
    let (entries, as_it_stands) = whole(text).expect(text);
    assert_eq!(quick, entries, "{text}");
    assert_eq!(as_it_stands, Some(text));
    assert_eq!(spelling::of(&quick), text);
    true
}

#[test]
fn the_usual_form_is_read_quickly_and_no_other() {
    for text in [
        r#"{"id":"i-1","":"","a":null,"b":true,"c":false}"#,
        r#"{"a":"\"\\\b\f\n\r\t","b":"{\"c\":\"é\"}"}"#,
        r#"{"a":"1","a":"2"}"#,
        "{\"a\":\"\u{7f}\u{2028}\"}",
    ] {
        assert!(is_quick(text), "{text}");
    }
    for text in [
        "",
        "{",
        "{}",
        "{\"",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":\"",
        "{\"a\":\"b\"",
        "{\"a\":\"b\",",
        "{\"a\":\"b\",}",
        "{\"a\":\"b\"} ",
        " {\"a\":\"b\"}",
        "{\"a\":\"b\"}}",
        "{\"a\":nul}",
        "{\"a\":truee}",
        "{\"a\":1}",
        "{\"a\":{}}",
        r#"{"a":"\/"}"#,
        r#"{"a":"\u0041"}"#,
        r#"{"a":"\x"}"#,
        r#"{"a":"\"#,
        r#"{"a":"\""#,
        r#"{"\n":"b"}"#,
        "{\"a\":\"\u{1f}\"}",
        "{\"a\":\"12345678\n\"}",
        "{\"\t\":\"\"}",
        "{\"a\":\"\\\"\n\"}",
        "{\"a\" :\"b\"}",
    ] {
        assert!(!is_quick(text), "{text}");
    }
}

/// Every byte that ends a run, at each place in a word and beside each other byte.
#[test]
fn a_text_ends_where_it_ends_whatever_stands_beside_it() {
    for before in 0..20 {
        for byte in 0..=0x7f_u8 {
            let filled = "\u{e9}".repeat(before / 2) + if before % 2 == 0 { "" } else { "#" };
            let text = format!("{{\"{filled}\":\"{filled}{}!\"}}", char::from(byte));
            let plain = !matches!(byte, b'"' | b'\\' | ..b' ');
            assert_eq!(is_quick(&text), plain, "{text:?}");
        }
    }
}

/// JSON text of any order, with names that stand several times.
fn text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        3 => "[a-c]{0,2}".prop_map(|text| format!("\"{text}\"")),
        1 => Just("\"\\u0041\\n\"".to_owned()),
        1 => "-?[1-9][0-9]{0,22}([.][0-9]{1,3})?([eE][+-]?[0-9]{1,3})?",
        1 => Just("null ".to_owned()),
        1 => Just("true".to_owned()),
    ];
    let name = prop_oneof![
        8 => "[ab]{0,2}".prop_map(|name| format!("\"{name}\"")),
        1 => Just("\"\\u0061\"".to_owned()),
        1 => Just("\"a/b\"".to_owned()),
        1 => Just("\"\\\"\"".to_owned()),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        let member = (name.clone(), inner.clone());
        let member = member.prop_map(|(name, value)| format!("{name} : {value}"));
        prop_oneof![
            proptest::collection::vec(inner, 0..6).prop_map(|all| format!("[{}]", all.join(","))),
            proptest::collection::vec(member, 0..6)
                .prop_map(|all| format!("{{{}}}", all.join(", "))),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_nested_is_spelt_as_a_map_spells_it(text in text()) {
        check(format!("{{\"z\":{text},\"a\":{text}}}").as_bytes());
        check(text.as_bytes());
    }

    #[test]
    fn the_quick_reading_finds_what_the_whole_one_does(
        pieces in proptest::collection::vec(
            prop_oneof![
                8 => Just("\"a\":\"b\""), 4 => Just(","), 2 => Just("\"cd\":\"\\\"\\\\\\n\""), 1 => Just("\"é\":null"), 1 => Just("\""),
                1 => Just(":"), 1 => Just("\\"), 1 => Just("\\u0041"), 1 => Just(" "), 1 => Just("{"), 1 => Just("}"), 1 => Just("1"),
                1 => Just("true"), 1 => Just("\u{1}"),
            ],
            0..12,
        ),
        commas: bool,
    ) {
        let text = format!("{{{}}}", pieces.join(if commas { "," } else { "" }));
        is_quick(&text);
        check(text.as_bytes());
    }

    #[test]
    fn any_texts_are_read_quickly_when_serde_json_writes_them(
        texts in proptest::collection::vec(("\\PC{0,12}", "[a-c\"\\\\\n\t/é]{0,20}"), 1..6),
    ) {
        let fields = texts.iter().map(|(name, text)| {
            format!("{}:{}", Value::from(name.as_str()), Value::from(text.as_str()))
        });
        let text = format!("{{{}}}", fields.collect::<Vec<_>>().join(","));
        let has_plain_names = !texts.iter().any(|(name, _)| name.contains(['"', '\\']));
        prop_assert_eq!(is_quick(&text), has_plain_names, "{}", text);
        check(text.as_bytes());
    }

    #[test]
    fn any_object_is_read_alike(value in value(), whole: bool, cut in 0_usize..60) {
        let text = value.to_string();
        let mut body = format!("{{\"z\":{text},\"a\":{text}}}");
        if !whole {
            body = body.chars().take(cut).collect();
        }
        check(body.as_bytes());
        check(Value::from(body).to_string().as_bytes());
    }
}
