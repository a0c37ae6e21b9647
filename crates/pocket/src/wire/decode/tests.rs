use proptest::prelude::*;
use serde_json::json;

use super::*;

fn message(result: Result<Decoded>) -> String {
    let error = result.unwrap_err();
    assert_eq!((error.code.as_u16(), error.reason), (400, "BadRequest"));
    error.message
}

#[test]
fn fields_written_twice_are_recorded_and_the_last_wins() {
    let body = br#"{"a": 1, "s": {"x": [0, {"y": 1, "y": 2, "y": 3}]}, "a": 2}"#;
    for decoded in [json(body).unwrap(), yaml(body).unwrap()] {
        assert_eq!(decoded.value, json!({"a": 2, "s": {"x": [0, {"y": 3}]}}));
        assert_eq!(decoded.duplicates, ["s.x[1].y", "a"]);
    }
    let block = yaml(b"a: 1\ns:\n  x:\n  - y: 1\n    y: 2\na: 2\n").unwrap();
    assert_eq!(block.value, json!({"a": 2, "s": {"x": [{"y": 2}]}}));
    assert_eq!(block.duplicates, ["s.x[0].y", "a"]);
}

#[test]
fn duplicates_are_reported_up_to_a_bound() {
    let fields: Vec<String> = (0..300).map(|i| format!("\"f{i}\":1,\"f{i}\":2")).collect();
    let body = format!("{{{}}}", fields.join(","));
    let decoded = json(body.as_bytes()).unwrap();
    assert_eq!(decoded.duplicates.len(), MAX_DUPLICATES);
    assert_eq!(decoded.value.as_object().unwrap().len(), 300);
}

#[test]
fn numbers_keep_their_kind() {
    let body = b"[1, -1, 18446744073709551615, -9223372036854775808, 1.5, 1.0, 1e3]";
    let value = json(body).unwrap().value;
    assert!(value[0].is_u64() && value[1].is_i64() && value[2].is_u64() && value[3].is_i64());
    assert!(value[4].is_f64() && value[5].is_f64() && value[6].is_f64());
}

#[test]
fn yaml_scalars_mean_what_kubernetes_reads() {
    let text = b"a: 1\nb: '1'\nc: yes\nd: 0644\ne: ~\nf: 1.0\ng: 1.5\nh: 2020-01-01\ni: on\nj: null\nk: ''\nl: 100m\n1: x\ntrue: z\n";
    let value = yaml(text).unwrap().value;
    let expected = json!({
        "a": 1, "b": "1", "c": true, "d": 420, "e": null, "f": 1, "g": 1.5, "h": "2020-01-01",
        "i": true, "j": null, "k": "", "l": "100m", "1": "x", "true": "z",
    });
    assert_eq!(value, expected);
}

#[test]
fn aliases_and_merge_keys_expand() {
    let text = b"base: &b {x: 1}\nuse: *b\nmore:\n  <<: *b\n  y: 2\n";
    let value = yaml(text).unwrap().value;
    assert_eq!(
        value,
        json!({"base": {"x": 1}, "use": {"x": 1}, "more": {"x": 1, "y": 2}})
    );
}

#[test]
fn flow_yaml_that_is_not_json_is_read() {
    assert_eq!(
        yaml(b"{a: 1, b: [x, z]}").unwrap().value,
        json!({"a": 1, "b": ["x", "z"]})
    );
}

#[test]
fn malformed_bodies_are_bad_requests_that_say_why() {
    for body in [
        &b""[..],
        b"{",
        b"{\"a\":}",
        b"{} {}",
        b"{}x",
        b"[1,]",
        b"nul",
        b"\"\xff\"",
        b"1e999",
    ] {
        let message = message(json(body));
        assert!(
            message.starts_with("couldn't get version/kind; json parse error: "),
            "{message}"
        );
    }
    for body in [
        &b"a: [1"[..],
        b"a: b: c",
        b"\xff",
        b"a: .nan",
        b"*x",
        b"? [a]\n: b",
    ] {
        let message = message(yaml(body));
        assert!(
            message.starts_with("couldn't get version/kind; yaml parse error: "),
            "{message}"
        );
    }
}

#[test]
fn a_body_is_one_document() {
    assert!(yaml(b"---\na: 1\n").is_ok());
    assert!(yaml(b"a: 1\n---\na: 2\n").is_err());
    assert!(yaml(b"{\"a\": 1}\n---\n{\"a\": 2}\n").is_err());
}

#[test]
fn nesting_is_bounded() {
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(json(deep(MAX_DEPTH).as_bytes()).is_ok());
    let text = message(json(deep(MAX_DEPTH + 1).as_bytes()));
    assert!(text.contains("deeper than 127 levels"), "{text}");
    assert!(json("[".repeat(1_000_000).as_bytes()).is_err());
    assert!(json("{\"a\":".repeat(500_000).as_bytes()).is_err());
    assert!(yaml(deep(MAX_YAML_DEPTH).as_bytes()).is_ok());
    assert!(yaml(deep(MAX_YAML_DEPTH + 1).as_bytes()).is_err());
    assert!(yaml("[".repeat(1_000_000).as_bytes()).is_err());
    assert!(yaml("- ".repeat(100_000).as_bytes()).is_err());
}

#[test]
fn an_alias_bomb_is_refused() {
    let levels = (1..12).map(|i| {
        let previous = vec![format!("*a{}", i - 1); 10].join(",");
        format!("a{i}: &a{i} [{previous}]\n")
    });
    let text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned() + &levels.collect::<String>();
    assert!(message(yaml(text.as_bytes())).contains("yaml parse error"));
}

/// Counts the values that a body is read as. Reading ends with the first error.
struct Count<'a>(&'a std::cell::Cell<usize>);

impl<'de> DeserializeSeed<'de> for Count<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        reader: D,
    ) -> std::result::Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> serde::de::Visitor<'de> for Count<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("lists of texts")
    }

    fn visit_str<E>(self, _: &str) -> std::result::Result<(), E> {
        self.0.set(self.0.get() + 1);
        Ok(())
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(
        self,
        mut list: A,
    ) -> std::result::Result<(), A::Error> {
        self.0.set(self.0.get() + 1);
        while list.next_element_seed(Count(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(
        self,
        mut map: A,
    ) -> std::result::Result<(), A::Error> {
        self.0.set(self.0.get() + 1);
        while map.next_key_seed(Count(self.0))?.is_some() {
            map.next_value_seed(Count(self.0))?;
        }
        Ok(())
    }
}

#[test]
fn what_an_alias_bomb_costs_is_bounded_by_its_size() {
    let levels = (1..7).map(|i| {
        let previous = vec![format!("*a{}", i - 1); 8].join(",");
        format!("a{i}: &a{i} [{previous}]\n")
    });
    let text = "a0: &a0 [x,x,x,x]\n".to_owned() + &levels.collect::<String>();
    assert!(text.len() < 350, "{}", text.len());
    let read = |length| {
        let count = std::cell::Cell::new(0);
        let result = serde_saphyr::with_deserializer_from_str_with_options(
            &text,
            options(length),
            |reader| Count(&count).deserialize(reader),
        );
        (result.is_ok(), count.get())
    };
    // With the budget of a large body it is read as 1.5 million values, or refused after a third of them.
    let (_, of_large) = read(usize::MAX);
    assert!(of_large > 100_000, "{of_large}");
    let (accepted, of_small) = read(text.len());
    assert!(
        !accepted && of_small <= MIN_REPEATED + text.len(),
        "{of_small}"
    );
    // Aliases as people write them are repeated in a body of any size.
    let used = "a: &a [x, y]\nb: [*a, *a]\n";
    assert!(yaml(used.as_bytes()).is_ok());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1.0e300..1.0e300).prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map("\\PC{0,6}", inner, 0..6)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

fn whole_floats_to_integers(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(whole_floats_to_integers),
        Value::Object(map) => map.values_mut().for_each(whole_floats_to_integers),
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap();
            if float.fract() == 0.0 && float.abs() < 9.0e15 {
                *value = Value::from(float as i64);
            }
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn a_body_without_duplicates_reads_as_serde_json_reads_it(value in any_json()) {
        let body = serde_json::to_vec(&value).unwrap();
        let decoded = json(&body).unwrap();
        prop_assert_eq!(decoded.value, serde_json::from_slice::<Value>(&body).unwrap());
        prop_assert!(decoded.duplicates.is_empty());
    }

    #[test]
    fn json_read_as_yaml_is_the_same_but_for_whole_floats(value in any_json()) {
        let text = format!("--- {value}\n");
        let decoded = yaml(text.as_bytes()).unwrap();
        let mut expected = value;
        whole_floats_to_integers(&mut expected);
        prop_assert_eq!(decoded.value, expected);
    }

    #[test]
    fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = json(&body);
        let _ = yaml(&body);
    }
}

#[test]
fn a_whole_number_of_yaml_is_an_integer() {
    for (text, expected) in [
        ("a: 2.0", json!({"a": 2})),
        ("{\"a\": [1e3, -3.0]}", json!({"a": [1000, -3]})),
        ("a: 1.5", json!({"a": 1.5})),
        ("a: 1e30", json!({"a": 1e30})),
    ] {
        assert_eq!(yaml(text.as_bytes()).unwrap().value, expected, "{text}");
    }
    assert_eq!(json(b"{\"a\": 2.0}").unwrap().value, json!({"a": 2.0}));
}
