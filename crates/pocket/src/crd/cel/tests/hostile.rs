//! Rules that try to run for ever, or to fill the memory.

use proptest::prelude::*;

use super::*;

fn big() -> Value {
    let numbers: Vec<u32> = (0..1000).collect();
    json!({"spec": {"sizes": numbers, "name": "x".repeat(1000)}})
}

#[test]
fn endless_work_ends_with_a_problem() {
    let nested = "self.sizes.all(a, self.sizes.all(b, self.sizes.all(c, a + b + c >= 0)))";
    let squares = "self.sizes.map(a, self.sizes.map(b, a * b)).size() == 1000 && self.sizes.map(a, self.sizes.map(b, self.sizes.map(c, c))).size() > 0";
    let links: Vec<String> = (1..40)
        .map(|i| format!("[a{0} + a{0}].exists(a{i}, ", i - 1))
        .collect();
    let links = links.concat();
    let doubling = format!(
        "[self.name].exists(a0, {links}a39.size() > 0{}",
        ")".repeat(40)
    );
    let lists = doubling.replace("self.name", "self.sizes");
    let replaced =
        "self.name.replace('', self.name).replace('', self.name).replace('', self.name).size() > 0";
    let formatted = "self.sizes.map(a, self.name).map(b, '%s%s%s'.format([self.sizes, self.sizes, self.sizes])).size() > 0";
    let patterns = "self.sizes.all(a, self.sizes.all(b, self.name.matches('a{' + string(b % 9) + '}') || true))";
    let heavy = "self.sizes.all(a, self.sizes.all(b, !self.name.matches('(x{0,90}y){9}')))";
    for rule in [
        heavy, nested, squares, &doubling, &lists, replaced, formatted, patterns,
    ] {
        let schema = with_rules(&json!([{"rule": rule}]));
        let found = outcome(&schema, &big(), None);
        assert_eq!(found.len(), 1, "{}", &rule[..40]);
        assert!(found[0].contains("cost limit exceeded"), "{found:?}");
    }
}

/// Each of these does much work in one step, so it must be charged by what it reads.
#[test]
fn long_values_are_paid_for_when_they_are_read() {
    let long = "1".repeat(300_000);
    let sizes: Vec<u32> = (0..1000).collect();
    let object = json!({"spec": {"sizes": sizes, "name": long, "raw": long, "labels": {long.as_str(): "x"}}});
    for body in [
        "self.raw.size() > 0",
        "strings.quote(self.name) != ''",
        "double(self.name) > 0.0",
        "isURL(self.name) || true",
        "isQuantity(self.name) || true",
        "self.labels[self.name] == 'x'",
        "self.name in self.labels",
        "{self.name: 1}.size() == 1",
        "[self.name, self.name].isSorted()",
        "[self.name, self.name].max() != ''",
        "self.raw in [self.raw]",
        "bytes(self.name).size() > 0",
    ] {
        let rule = format!("self.sizes.all(a, {body})");
        let schema = with_rules(&json!([{"rule": rule}]));
        let found = outcome(&schema, &object, None);
        assert!(
            found.len() == 1 && found[0].contains("cost limit exceeded"),
            "{body} {}",
            found.len()
        );
    }
}

#[test]
fn running_out_is_not_absorbed() {
    let endless = "self.sizes.all(a, self.sizes.all(b, self.sizes.all(c, true)))";
    for rule in [
        format!("{endless} || true"),
        format!("!({endless} && false)"),
        format!("[1, 2].exists(x, x == 2 || {endless})"),
    ] {
        let schema = with_rules(&json!([{"rule": rule}]));
        assert_eq!(outcome(&schema, &big(), None).len(), 1, "{rule}");
    }
}

#[test]
fn all_rules_of_an_object_share_a_budget() {
    let endless = json!({"rule": "self.sizes.all(a, self.sizes.all(b, self.sizes.all(c, true)))"});
    let schema = with_rules(&Value::Array(vec![endless; 40]));
    let (compiled, rules, _) = compiled(&schema);
    let mut problems = Problems::new();
    rules.check_within(2_500_000, compiled.root(), &big(), None, &mut problems);
    let found: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 3);
    assert!(found[2].contains("no further validation rules will be run"));
}

#[test]
fn deep_and_long_expressions_are_refused() {
    for rule in [
        format!("{}true{}", "(".repeat(4000), ")".repeat(4000)),
        format!("{}1{} == [1]", "[".repeat(3000), "]".repeat(3000)),
        format!("{}true", "true ? ".repeat(1000)),
        format!("{} > 0", vec!["1"; 4900].join("+")),
        format!("self{} == 1", ".a".repeat(4900)),
        format!("self{} == 1", "[0]".repeat(3000)),
        format!("{}1{}", "size(".repeat(1500), ")".repeat(1500)),
        format!("{}true", "true || ".repeat(3000)),
    ] {
        assert!(refusal(&rule).is_some(), "{}", &rule[..40]);
    }
    let long = format!("{}true", "true || ".repeat(1000));
    assert_eq!(refusal(&long), None);
    assert_eq!(refusal(&format!("{}true", "!".repeat(9000))), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_text_makes_the_compiler_fail_badly(
        rule in r#"(self|oldSelf|\.\?|\.name|\.sizes|\.all\(a, |\[|\]|\(|\)|'x'|1|\+|==|&&| in |has\(|\{|\}|,|:|\?|é|`|"){0,14}"#
    ) {
        refusal(&rule);
    }
}
