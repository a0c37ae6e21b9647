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
