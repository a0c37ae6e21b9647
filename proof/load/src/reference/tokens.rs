//! Users with a bearer token, as in kube-apiserver's `--token-auth-file`.

/// The admin's token. The server listens only on this machine, for as long as a test runs.
pub(super) const ADMIN: &str = "admin-token";

/// A user with a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub token: String,
    pub user: String,
    pub uid: String,
    pub groups: Vec<String>,
}

impl Token {
    /// A user whose token is the name and `-token`.
    pub fn new(user: &str, groups: &[&str]) -> Self {
        Self {
            token: format!("{user}-token"),
            user: user.to_owned(),
            uid: user.to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
        }
    }

    fn line(&self) -> String {
        let groups = self.groups.join(",");
        format!("{},{},{},\"{groups}\"\n", self.token, self.user, self.uid)
    }
}

/// The text of the file: the admin first, then these.
pub(super) fn file(tokens: &[Token]) -> String {
    let admin = Token::new("admin", &["system:masters"]);
    std::iter::once(&admin)
        .chain(tokens)
        .map(Token::line)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_admin_comes_first_and_groups_are_one_cell() {
        let text = file(&[
            Token::new("alice", &["devs", "ops"]),
            Token::new("bob", &[]),
        ]);
        assert_eq!(
            text,
            "admin-token,admin,admin,\"system:masters\"\n\
             alice-token,alice,alice,\"devs,ops\"\nbob-token,bob,bob,\"\"\n"
        );
        assert!(text.starts_with(ADMIN));
    }
}
