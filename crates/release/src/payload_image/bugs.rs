//! What Jira and Bugzilla know of the bugs in a changelog.

use std::time::Duration;

use futures::{StreamExt, stream};
use neap_kit::client::{Client, Error as CallError, percent_encoded};
use serde::Deserialize;

use super::changelog::Bug;

const JIRA: &str = "https://issues.redhat.com/rest/api/latest/issue/";
const BUGZILLA: &str = "https://bugzilla.redhat.com/rest/bug/";
/// Questions at a time.
const PARALLEL: usize = 10;
const DEADLINE: Duration = Duration::from_secs(30);
const MAX_ANSWER: usize = 1 << 20;

/// Why a bug was not looked up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The call.
    #[error("{id} cannot be looked up")]
    Call {
        /// The bug.
        id: String,
        /// Why.
        source: CallError,
    },
    /// The system does not show it.
    #[error("{0} does not exist, or only some users may see it")]
    Absent(String),
}

#[derive(Deserialize)]
struct Issue {
    fields: IssueFields,
}

#[derive(Deserialize)]
struct IssueFields {
    #[serde(default)]
    summary: String,
    status: Option<Named>,
    priority: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct BugzillaAnswer {
    #[serde(default)]
    bugs: Vec<BugzillaBug>,
}

#[derive(Deserialize)]
struct BugzillaBug {
    #[serde(default)]
    status: String,
    #[serde(default)]
    priority: String,
    #[serde(default)]
    summary: String,
}

/// Looks all bugs up, each as a caller without a name. Those that are not found stay as they are.
pub async fn look_up(client: &Client, bugs: &mut [Bug]) -> Vec<Error> {
    let answers = stream::iter(bugs.iter().cloned()).map(|bug| one(client, bug));
    let answers: Vec<_> = answers.buffered(PARALLEL).collect().await;
    let mut errors = Vec::new();
    for (bug, answer) in bugs.iter_mut().zip(answers) {
        match answer {
            Ok(found) => *bug = found,
            Err(error) => errors.push(error),
        }
    }
    errors
}

async fn one(client: &Client, bug: Bug) -> Result<Bug, Error> {
    let address = if bug.source == 0 {
        let fields = "include_fields=id,status,priority,summary";
        format!("{BUGZILLA}{}?{fields}", percent_encoded(&bug.id))
    } else {
        let fields = "fields=status,priority,summary";
        format!("{JIRA}{}?{fields}", percent_encoded(&bug.id))
    };
    let id = bug.id.clone();
    let failed = |source| Error::Call {
        id: id.clone(),
        source,
    };
    let request = client.get(&address).deadline(DEADLINE);
    let answer = request.fetch(MAX_ANSWER).await.map_err(failed)?;
    if [401, 403, 404].contains(&answer.status.as_u16()) {
        return Err(Error::Absent(bug.id));
    }
    let answer = answer.success().map_err(failed)?;
    if bug.source == 0 {
        let answer: BugzillaAnswer = answer.json().map_err(failed)?;
        let found = answer.bugs.into_iter().next();
        let found = found.ok_or_else(|| Error::Absent(bug.id.clone()))?;
        return Ok(Bug {
            status: found.status,
            priority: found.priority,
            summary: found.summary,
            ..bug
        });
    }
    let Issue { fields } = answer.json().map_err(failed)?;
    let name = |named: Option<Named>| named.map(|it| it.name).unwrap_or_default();
    Ok(Bug {
        status: name(fields.status),
        priority: name(fields.priority),
        summary: fields.summary,
        ..bug
    })
}

#[cfg(test)]
mod tests {
    use http::{Request, Response, StatusCode};
    use neap_kit::{
        client::{Body, TransportError, transport_fn},
        clock::Clock,
        why,
    };
    use serde_json::json;

    use super::*;

    fn bug(id: &str, source: u8) -> Bug {
        Bug {
            id: id.to_owned(),
            status: String::new(),
            priority: String::new(),
            summary: String::new(),
            source,
        }
    }

    /// Both systems: one bug in each, one that only some users may see, and one at which they fail.
    fn systems() -> Client {
        let transport = transport_fn(|request: Request<Body>| async move {
            let path = format!("{}{}", request.uri().host().unwrap(), request.uri().path());
            let mut response = Response::new(Body::empty());
            let answer = match path.as_str() {
                "issues.redhat.com/rest/api/latest/issue/OCPBUGS-1" => {
                    json!({"key": "OCPBUGS-1", "fields": {
                        "summary": "it fails", "status": {"name": "Verified"}, "priority": null,
                    }})
                }
                "bugzilla.redhat.com/rest/bug/7" => json!({"bugs": [
                    {"id": 7, "status": "CLOSED", "priority": "high", "summary": "it failed"},
                ]}),
                "bugzilla.redhat.com/rest/bug/8" => json!({"bugs": []}),
                "issues.redhat.com/rest/api/latest/issue/OCPBUGS-2" => {
                    *response.status_mut() = StatusCode::UNAUTHORIZED;
                    json!({})
                }
                _ => {
                    *response.status_mut() = StatusCode::BAD_REQUEST;
                    json!({})
                }
            };
            *response.body_mut() = Body::from(answer.to_string());
            Ok::<_, TransportError>(response)
        });
        let client = Client::builder("bugs", Clock::system()).transport(transport);
        client.build().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn bugs_of_both_systems_are_looked_up_and_those_that_are_not_found_are_named() {
        let mut bugs = [
            bug("7", 0),
            bug("8", 0),
            bug("OCPBUGS-1", 1),
            bug("OCPBUGS-2", 1),
            bug("OCPBUGS-3", 1),
        ];
        let errors = look_up(&systems(), &mut bugs).await;
        let errors: Vec<_> = errors.iter().map(|error| why::chain(error)).collect();
        assert_eq!(errors.len(), 3, "{errors:?}");
        for (error, id) in errors.iter().zip([
            "8 does not exist",
            "OCPBUGS-2 does not exist",
            "OCPBUGS-3 cannot",
        ]) {
            assert!(error.contains(id), "{error}");
        }
        let found = |bug: &Bug| {
            (
                bug.status.clone(),
                bug.priority.clone(),
                bug.summary.clone(),
            )
        };
        let text =
            |one: &str, two: &str, three: &str| (one.to_owned(), two.to_owned(), three.to_owned());
        assert_eq!(found(&bugs[0]), text("CLOSED", "high", "it failed"));
        assert_eq!(found(&bugs[2]), text("Verified", "", "it fails"));
        assert_eq!(found(&bugs[3]), text("", "", ""), "it stays as it was");
    }
}
