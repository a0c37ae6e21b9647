use super::*;

fn properties(pairs: &[(&str, &str)]) -> Vec<PlatformProperty> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| PlatformProperty::new(*name, *value))
        .collect()
}

fn pool(name: &str, prefix: &str, pairs: &[(&str, &str)]) -> (String, QueueName) {
    let queue = QueueName {
        instance_name_prefix: prefix.to_owned(),
        platform: ordered(&properties(pairs)),
        size_class: 0,
    };
    (name.to_owned(), queue)
}

#[test]
fn properties_are_in_the_order_of_names_and_values_and_once() {
    let some = properties(&[("b", "2"), ("a", "2"), ("a", "1"), ("b", "2")]);
    let in_order = properties(&[("a", "1"), ("a", "2"), ("b", "2")]);
    assert_eq!(ordered(&some), in_order);
}

#[test]
fn the_nearest_pool_is_named_with_the_property_that_differs() {
    let pools = [
        pool("arm", "", &[("OSFamily", "linux"), ("ISA", "arm64")]),
        pool("windows", "win", &[("OSFamily", "windows")]),
    ];
    let wanted = properties(&[("OSFamily", "linux"), ("ISA", "x86-64")]);
    let nearest = nearest_pool("", &wanted, &pools).unwrap();
    assert_eq!(nearest.pool, "arm");
    let difference = "the action has ISA=\"x86-64\", the pool has ISA=\"arm64\"";
    assert_eq!(nearest.differences, [difference]);
    let nearest = nearest_pool("", &[], &pools).unwrap();
    assert_eq!(
        nearest.pool, "arm",
        "two differences each, and the first by name"
    );
    assert_eq!(nearest_pool("", &wanted, &[]), None);
}

#[test]
fn a_matching_pool_has_no_differences() {
    let pools = [pool("linux", "team", &[("OSFamily", "linux")])];
    let wanted = properties(&[("OSFamily", "linux")]);
    for (instance, matches) in [
        ("team", true),
        ("team/ci", true),
        ("teams", false),
        ("", false),
    ] {
        let nearest = nearest_pool(instance, &wanted, &pools).unwrap();
        assert_eq!(nearest.differences.is_empty(), matches, "{instance}");
    }
}

#[test]
fn the_message_of_a_scheduler_names_what_it_looked_for() {
    let message = "FAILED_PRECONDITION: No workers exist for instance name prefix \"ci\" platform \
         {\"properties\":[{\"name\":\"OSFamily\",\"value\":\"linux\"},{\"name\":\"x\"}]}: retry";
    let (instance, platform) = parse_refusal(message).unwrap();
    assert_eq!(instance, "ci");
    assert_eq!(platform, properties(&[("OSFamily", "linux"), ("x", "")]));
    let none = "No workers exist for instance name prefix \"\" platform {}";
    assert_eq!(parse_refusal(none), Some((String::new(), Vec::new())));
    for other in ["", "platform", "platform {", "no such file"] {
        assert_eq!(parse_refusal(other), None, "{other}");
    }
}
