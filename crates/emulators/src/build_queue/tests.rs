use super::*;

fn id(pod: &str) -> WorkerId {
    BTreeMap::from([("pod".to_owned(), pod.to_owned())])
}

#[test]
fn a_drained_worker_gets_no_action() {
    let (queue, name) = (BuildQueue::default(), SizeClassQueueName::of_platform(&[]));
    queue.register(&name, id("a"), None);
    queue.state.lock().drains.push((name.clone(), id("a")));
    assert_eq!(queue.execute(&name, "one"), None);
    queue.register(&name, id("b"), None);
    assert_eq!(queue.execute(&name, "two"), Some(id("b")));
    assert_eq!(queue.operation_of(&id("b")).as_deref(), Some("two"));
    assert_eq!(queue.execute(&name, "three"), None, "it is busy");
    queue.finish(&id("b"));
    assert_eq!(queue.execute(&name, "three"), Some(id("b")));
    queue.restart();
    assert!(queue.drains().is_empty());
}

#[test]
fn actions_wait_in_their_own_queue_and_in_order() {
    let queue = BuildQueue::default();
    let [linux, windows] =
        ["linux", "windows"].map(|it| SizeClassQueueName::of_platform(&[("OS", it)]));
    queue.register(&linux, id("a"), None);
    queue.register(&windows, id("b"), None);
    for (name, operation) in [(&linux, "one"), (&windows, "two"), (&linux, "three")] {
        queue.enqueue(name, operation);
    }
    assert_eq!(queue.next_operation(&id("a")).as_deref(), Some("one"));
    assert_eq!(queue.next_operation(&id("a")), None, "it is busy");
    queue.finish(&id("a"));
    assert_eq!(queue.next_operation(&id("a")).as_deref(), Some("three"));
    assert_eq!(queue.next_operation(&id("b")).as_deref(), Some("two"));
    assert_eq!(queue.next_operation(&id("c")), None, "it is not known");
}

#[test]
fn the_queue_of_an_action_has_its_platform_and_the_longest_prefix() {
    let queue = BuildQueue::default();
    let name = |prefix: &str, size_class| {
        let mut name = SizeClassQueueName::of_platform(&[("OS", "linux")]);
        name.size_class = size_class;
        let inner = name.platform_queue_name.as_mut().unwrap();
        inner.instance_name_prefix = prefix.to_owned();
        name
    };
    let names = [name("", 0), name("team", 8), name("team", 2), name("te", 0)];
    for (number, name) in names.iter().enumerate() {
        queue.register(name, id(&number.to_string()), None);
    }
    let platform = names[0]
        .platform_queue_name
        .clone()
        .unwrap()
        .platform
        .unwrap();
    let found = |instance: &str| queue.find(instance, &platform);
    assert_eq!(found("team/a"), Some(name("team", 2)));
    assert_eq!(found("team"), Some(name("team", 2)));
    assert_eq!(found("teams"), Some(name("", 0)));
    assert_eq!(queue.find("team", &Platform::default()), None);
}
