//! Held against the other reading, into a map of values: the same is refused, the same is found, and each value is spelt alike.

use proptest::prelude::*;

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
    for count in [2, 17, FEW, FEW + 1, 5_000] {
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
fn it_reads_what_a_map_reads() {
    for body in [
        r#"{"b":1,"a":"x","":null,"c":[1,{"z":1,"y":2.50}],"d":{"k":1e3},"e":true,"f":"","g":-0.0}"#,
        r#"{"\u0062":"\u0061\"\\\n","a":"é","c":"\ud83d\ude00"}"#,
        "\u{feff} {\"id\":1} ",
        r#""{\"id\":1,\"text\":\"a\\\"b\"}""#,
        r#"{"a":1,"\u0061":2}"#,
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

proptest! {
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
