//! Flags of the original's programs that have no effect here. They are accepted, so that the arguments of its
//! Deployments can stay, and each that is used is logged.
//!
//! Its flags for kubeconfigs of further clusters are refused: without them, objects would be written elsewhere.

use clap::Args;

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
        assert!(Cli::try_parse_from(["neap", "--prow-job-kubeconfig=/etc/k"]).is_err());
    }
}
