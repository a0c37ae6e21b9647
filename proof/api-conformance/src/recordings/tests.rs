use super::*;

fn recording(lines: &[(u64, Value)], pocket_only: bool) -> Recording {
    let mut steps = BTreeMap::<u64, Vec<Value>>::new();
    for (line, entry) in lines {
        steps.entry(*line).or_default().push(entry.clone());
    }
    Recording {
        scenario: "room/topic".into(),
        pocket_only,
        steps,
    }
}

fn got(body: &Value) -> Value {
    json!({"asked": "GET /api/v1/namespaces/$ns/configmaps/a", "status": 200, "body": body})
}

#[test]
fn a_step_that_only_one_server_answered_is_told() {
    let one = recording(&[(1, got(&json!({})))], false);
    let two = recording(&[(1, got(&json!({}))), (9, got(&json!({})))], false);
    for (theirs, ours, rule) in [(&one, &two, "0 not 1"), (&two, &one, "1 not 0")] {
        let mut found = Comparison::default();
        theirs.compare(ours, &mut found);
        let differences: Vec<_> = found.differences.iter().collect();
        assert_eq!(differences.len(), 1);
        assert_eq!(differences[0].place, "room/topic.md:9");
        assert_eq!(differences[0].kind, "configmaps");
        assert_eq!(differences[0].difference.rule, rule);
    }
}

#[test]
fn a_recording_of_one_server_alone_is_told_unless_it_is_ours_by_intent() {
    let folder = |name: &str, files: &[(&str, Value)]| {
        let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (file, head) in files {
            fs::write(folder.join(file), head.to_string()).unwrap();
        }
        folder
    };
    let head = |name: &str, only: bool| json!({"scenario": name, "namespace": "n", "id": "i", "pocketOnly": only});
    let theirs = folder(
        "recordings-theirs",
        &[("a", head("a", false)), ("b", head("b", true))],
    );
    let ours = folder(
        "recordings-ours",
        &[
            ("a", head("a", false)),
            ("c", head("c", false)),
            ("d", head("d", true)),
        ],
    );
    let found = compare_folders(&theirs, &ours).unwrap();
    for folder in [theirs, ours] {
        fs::remove_dir_all(folder).unwrap();
    }
    assert_eq!(found.files, 1);
    assert_eq!(found.unpaired, ["b", "c"]);
}

#[test]
fn a_generated_name_is_known_from_its_refusal() {
    let body = json!({"details": {"name": "Part_x4b2c", "causes": [
        {"field": "metadata.generateName", "message": "Invalid value: \"Part_\": must be"},
    ]}});
    let expected = ("Part_x4b2c".to_owned(), "Part_<generated>".to_owned());
    assert_eq!(refused_name(&body), Some(expected));
    assert_eq!(refused_name(&json!({"details": {"name": "a"}})), None);
}
