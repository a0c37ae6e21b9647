//! Flags of the original's programs. Those that have no effect here are accepted, so that the arguments of its
//! Deployments can stay, and each that is used is logged.
//!
//! Its flags for the kubeconfigs of several clusters are accepted if they all name one file, which then is that of
//! the process. Different files are refused: objects would be written to another cluster than the original's.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::Args;

use crate::exit::{Exit, Failure};

/// The kubeconfigs of the original: of releases, of everything but ProwJobs, of ProwJobs and of the tools image.
#[derive(Debug, Default, Args)]
#[group(skip)]
pub(super) struct Kubeconfigs {
    #[arg(long = "releases-kubeconfig", hide = true, value_name = "FILE")]
    releases: Option<PathBuf>,
    #[arg(long = "non-prow-job-kubeconfig", hide = true, value_name = "FILE")]
    non_prow_job: Option<PathBuf>,
    #[arg(long = "prow-job-kubeconfig", hide = true, value_name = "FILE")]
    prow_job: Option<PathBuf>,
    #[arg(long = "tools-kubeconfig", hide = true, value_name = "FILE")]
    tools: Option<PathBuf>,
}

impl Kubeconfigs {
    /// The kubeconfig of the process, of which `own` is that of `--kubeconfig`. The original takes its default for
    /// each flag that is not given, so all or none of the first three have to be there.
    pub(super) fn only(&self, own: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
        let non_prow = self.non_prow_job.as_deref().or(own);
        let used = [
            self.releases.as_deref().or(non_prow),
            self.tools.as_deref().or(non_prow),
            self.prow_job.as_deref().or(own),
            non_prow,
        ];
        if used.iter().all(|one| *one == used[0]) {
            return Ok(used[0].map(Path::to_path_buf));
        }
        let why = "releases, Jobs and ProwJobs are in one cluster here, and these flags name several kubeconfigs";
        let what = "the flags for kubeconfigs name more than one cluster";
        Err(Failure::new("NT-RELEASE-0005", Exit::Usage, what, why)
            .remedy("give all of them the same file, or --kubeconfig alone; nothing was started"))
    }
}

/// The arguments of a process with the verbosity of the original, `-v=N`, as that of this program: information up
/// to 3, and details from 4 on.
pub(crate) fn with_verbosity(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let all: Vec<OsString> = arguments.into_iter().collect();
    let is_role = |words: &[OsString]| {
        words.len() == 2
            && words[0] == "release"
            && (words[1] == "controller" || words[1] == "payloads")
    };
    if !all.windows(2).any(is_role) {
        return all;
    }
    let level = |argument: &OsString| -> Option<u32> {
        let text = argument.to_str()?;
        let text = text
            .strip_prefix("--v=")
            .or_else(|| text.strip_prefix("-v="))?;
        text.parse().ok()
    };
    let ours = |argument: OsString| match level(&argument) {
        None => Some(argument),
        Some(0) => None,
        Some(1..=3) => Some("-v".into()),
        Some(_) => Some("-vv".into()),
    };
    all.into_iter().filter_map(ours).collect()
}

/// Declares flags that are only noted. A flag may have a value, with or without `=`.
macro_rules! noted {
    ($(#[$doc:meta])* $name:ident { $($field:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Default, Args)]
        #[group(skip)]
        pub(super) struct $name {
            $(
                #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true")]
                $field: Vec<String>,
            )*
        }

        impl $name {
            /// The flags that were given.
            pub(super) fn given(&self) -> Vec<String> {
                let all = [$((stringify!($field), &self.$field)),*];
                let given = all.into_iter().filter(|(_, values)| !values.is_empty());
                given.map(|(name, _)| format!("--{}", name.replace('_', "-"))).collect()
            }
        }
    };
}

noted! {
    /// Of `release-controller`.
    ControllerFlags {
        artifacts, to, authentication_message, tools_image_stream_tag,
        supplemental_prow_configs_filename, supplemental_prow_configs_filename_suffix,
        verify_jira, github_throttle, github_endpoint, github_graphql_endpoint, github_token_path,
        github_app_id, github_app_private_key_path, jira_endpoint, jira_bearer_token_file, jira_username,
        jira_password_file, plugin_config, supplemental_plugin_config_dir,
    }
}

noted! {
    /// Of `release-payload-controller`.
    PayloadFlags {
        config, terminate_on_files, google_project_id, google_service_account_credential_file,
        bigquery_cache_ttl, jira_endpoint, jira_bearer_token_file, jira_username, jira_password_file,
    }
}

/// Says of each that it has no effect.
pub(super) fn warn(given: &[String]) {
    for flag in given {
        tracing::warn!(flag, "a flag of the original has no effect here");
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        flags: ControllerFlags,
    }

    #[test]
    fn arguments_of_the_original_are_accepted_and_named() {
        let arguments = [
            "neap",
            "--artifacts=artifacts.example.com",
            "--tools-image-stream-tag",
            ":tests",
            "--verify-jira",
        ];
        let cli = Cli::try_parse_from(arguments).unwrap();
        let given = ["--artifacts", "--tools-image-stream-tag", "--verify-jira"];
        assert_eq!(cli.flags.given(), given);
    }

    #[derive(Debug, Parser)]
    struct Clusters {
        #[command(flatten)]
        kubeconfigs: Kubeconfigs,
    }

    #[test]
    fn kubeconfigs_are_one_file_or_refused() {
        let only = |flags: &[&str], own: Option<&str>| {
            let arguments = ["neap"].iter().chain(flags);
            let cli = Clusters::try_parse_from(arguments).unwrap();
            let only = cli.kubeconfigs.only(own.map(Path::new));
            only.map(|it| it.map(|it| it.display().to_string()))
        };
        assert_eq!(only(&[], None).unwrap(), None);
        assert_eq!(only(&[], Some("/k")).unwrap().as_deref(), Some("/k"));
        let same = ["--non-prow-job-kubeconfig=/k", "--prow-job-kubeconfig=/k"];
        assert_eq!(only(&same, None).unwrap().as_deref(), Some("/k"));
        for several in [
            &["--prow-job-kubeconfig=/k"][..],
            &["--non-prow-job-kubeconfig=/k"],
            &["--releases-kubeconfig=/a", "--non-prow-job-kubeconfig=/b"],
        ] {
            let failure = only(several, None).unwrap_err();
            assert_eq!(failure.exit(), Exit::Usage, "{several:?}");
        }
    }

    #[test]
    fn the_verbosity_of_the_original_is_that_of_its_roles() {
        let ours = |arguments: &[&str]| -> Vec<String> {
            let all = with_verbosity(arguments.iter().map(OsString::from));
            all.into_iter()
                .map(|it| it.into_string().unwrap())
                .collect()
        };
        let role = ["neap", "release", "controller"];
        let with = |level: &str| ours(&[&role[..], &[level, "--dry-run"]].concat());
        assert_eq!(with("-v=2"), [&role[..], &["-v", "--dry-run"]].concat());
        assert_eq!(with("--v=4"), [&role[..], &["-vv", "--dry-run"]].concat());
        assert_eq!(with("-v=0"), [&role[..], &["--dry-run"]].concat());
        assert_eq!(with("-v"), [&role[..], &["-v", "--dry-run"]].concat());
        assert_eq!(ours(&["neap", "up", "-v=2"]), ["neap", "up", "-v=2"]);
    }
}
