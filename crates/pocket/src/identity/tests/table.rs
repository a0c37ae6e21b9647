use super::*;

fn user(name: &str, uid: &str, groups: &[&str]) -> User {
    User {
        name: name.into(),
        uid: uid.into(),
        groups: groups.iter().map(|&group| group.to_owned()).collect(),
        ..User::default()
    }
}

#[test]
fn a_line_gives_a_token_to_a_user_with_groups() {
    let table = "\u{feff}t1,alice,u-1,\"devs,ops\"\n\n  t2,bob,u-2\r\nt3,carol,u-3,\"\"\n\"t,4\",\"d \"\"o\"\"\",u-4,one\n";
    let tokens = Tokens::parse(table).unwrap();
    for (token, name, uid, groups) in [
        ("t1", "alice", "u-1", &["devs", "ops", AUTHENTICATED][..]),
        ("t2", "bob", "u-2", &[AUTHENTICATED]),
        // As kube-apiserver reads it.
        ("t3", "carol", "u-3", &["", AUTHENTICATED]),
        ("t,4", "d \"o\"", "u-4", &["one", AUTHENTICATED]),
    ] {
        assert_eq!(tokens.holder(token), Some(&user(name, uid, groups)));
    }
    for wrong in ["", "t", "t1 ", "T1", "t11", "alice"] {
        assert_eq!(tokens.holder(wrong), None, "{wrong:?}");
    }
}

#[test]
fn a_wrong_line_is_named_and_never_shown() {
    for (table, line, problem) in [
        ("t1,alice", 1, "fewer than three columns"),
        ("t1,alice,u\n\n,bob,u", 3, "the token is empty"),
        ("t1,,u", 1, "the user is empty"),
        ("t1,a,u\nt1,b,u", 2, "in the table already"),
        ("t1,a,u,\"devs", 1, "not closed"),
        ("t1,a,u,\"devs\"x", 1, "between a closing quote"),
        ("t1,a\"b,u", 1, "a quote inside"),
    ] {
        let error = Tokens::parse(table).unwrap_err();
        assert_eq!(error.line, line, "{table}");
        let told = error.to_string();
        assert!(told.contains(problem) && !told.contains("t1"), "{told}");
    }
}

#[test]
fn tokens_are_not_shown() {
    let mut tokens = Tokens::parse("canary,alice,u").unwrap();
    tokens.add("another-canary", User::default());
    assert_eq!(format!("{tokens:?}"), "2 tokens");
    assert!(tokens.holder("another-canary").is_some());
}
