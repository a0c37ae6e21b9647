use proptest::prelude::*;

use super::*;

fn canonical(text: &str) -> String {
    text.parse::<Quantity>().unwrap().to_string()
}

#[test]
fn canonical_forms() {
    for (text, expected) in [
        ("0", "0"),
        ("0Ki", "0"),
        ("0e3", "0"),
        ("-0", "0"),
        ("100m", "100m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1.5", "1500m"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("5.", "5"),
        ("+5", "5"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1001", "1001"),
        ("100k", "100k"),
        ("1000k", "1M"),
        ("1Gi", "1Gi"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Mi", "512Ki"),
        ("0.5Ki", "512"),
        ("1Ki", "1Ki"),
        ("1000Ki", "1000Ki"),
        ("0.1Gi", "107374182400m"),
        ("0.0001Ki", "102400u"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("1e4", "10e3"),
        ("12e5", "1200e3"),
        ("1e-3", "1e-3"),
        ("5e0", "5"),
        ("1E", "1E"),
        ("-1Gi", "-1Gi"),
        ("-5m", "-5m"),
        ("1n", "1n"),
        ("1.1n", "2n"),
        ("-1.1n", "-2n"),
        ("0.0000000001", "1n"),
        ("1u", "1u"),
        ("16Ei", "9223372036854775807"),
        ("100E", "9223372036854775807"),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854775807"),
        ("-100E", "-9223372036854775807"),
        ("007", "7"),
    ] {
        assert_eq!(canonical(text), expected, "{text}");
    }
}

#[test]
fn what_is_no_quantity_is_refused() {
    for (text, expected) in [
        ("", Error::Form),
        ("1.2.3", Error::Form),
        ("1 Gi", Error::Form),
        ("abc", Error::Form),
        ("1é", Error::Form),
        ("--1", Error::Number),
        ("Gi", Error::Number),
        (".", Error::Number),
        ("-", Error::Number),
        ("1GiB", Error::Form),
        ("1K", Error::Suffix),
        ("1mm", Error::Suffix),
        ("1e", Error::Suffix),
        ("1e1e1", Error::Form),
        ("2020-01-02", Error::Form),
        ("1-1", Error::Suffix),
        ("1e99999999999", Error::Suffix),
    ] {
        assert_eq!(text.parse::<Quantity>().unwrap_err(), expected, "{text:?}");
    }
}

#[test]
fn hostile_digits_and_exponents_are_capped() {
    let nines = "9".repeat(1_000_000);
    assert_eq!(canonical(&nines), "9223372036854775807");
    assert_eq!(canonical("1e2147483647"), "9223372036854775807");
    assert_eq!(canonical("1e-2147483648"), "1e-9");
    assert_eq!(canonical("0e2147483647"), "0");
    let just_above_one = format!("1.{}1", "0".repeat(100));
    assert_eq!(canonical(&just_above_one), "1000000001n");
    let tiny = format!("0.{}1Ei", "0".repeat(100_000));
    assert_eq!(canonical(&tiny), "1n");
}

#[test]
fn values_compare_across_families() {
    let q = |text: &str| text.parse::<Quantity>().unwrap();
    assert_eq!(q("1Ki"), q("1024"));
    assert_eq!(q("1e3"), q("1k"));
    assert!(q("1Gi") > q("1G"));
    assert!(q("-1") < q("1m"));
    assert_eq!(q("1500m").value(), 2);
    assert_eq!(q("-1500m").value(), -2);
    assert_eq!(q("0.25").milli_value(), 250);
    assert_eq!(q("100u").in_thousandths().to_string(), "1m");
    assert_eq!(q("-1500u").in_thousandths().to_string(), "-2m");
    assert_eq!(q("1").plus(q("500m")).to_string(), "1500m");
    assert_eq!(q("1Gi").minus(q("1Mi")).to_string(), "1023Mi");
    assert_eq!(q("0.0001Ki").plus(q("1023.8976")).to_string(), "1024");
    assert_eq!(q("-0.0001Ki").plus(q("1024.1024")).to_string(), "1Ki");
    assert_eq!(Quantity::whole(2048, Format::BinarySi).to_string(), "2Ki");
}

fn written() -> impl Strategy<Value = String> {
    let suffix = prop::sample::select(vec![
        "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3",
        "E-2", "e7",
    ]);
    ("[+-]?[0-9]{1,22}(\\.[0-9]{0,12})?", suffix).prop_map(|(n, s)| format!("{n}{s}"))
}

proptest! {
    #[test]
    fn the_canonical_form_is_idempotent_and_keeps_the_value(text in written()) {
        let first: Quantity = text.parse().unwrap();
        let shown = first.to_string();
        let again: Quantity = shown.parse().unwrap();
        prop_assert_eq!(again, first);
        prop_assert_eq!(again.to_string(), shown);
    }

    #[test]
    fn order_is_the_order_of_integers(a in any::<i64>(), b in any::<i64>()) {
        prop_assume!(a != i64::MIN && b != i64::MIN);
        let (p, q): (Quantity, Quantity) = (a.to_string().parse().unwrap(), b.to_string().parse().unwrap());
        prop_assert_eq!(p.cmp(&q), a.cmp(&b));
        prop_assert_eq!(p.value(), a);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
        let _ = text.parse::<Quantity>();
    }
}
