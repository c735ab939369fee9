//! `tidegate ddl-capture`: puts the event triggers into a database, compares them, takes them away.
//!
//! Says what it did and which rights it needs; what is done is the source's matter.
//! **Invariant:** nothing is changed by `verify` and `install --print`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::address::parse_address;
use super::files::{Addresses, assumed_worker, read_connector};
use super::output;
use crate::config::{TypedConnector, summarize};
use crate::error::{Code, Fault};
use crate::sources::SourceSettings;
use crate::sources::postgres::ConnectionSettings;
use crate::sources::postgres::ddl::{self, CaptureStatus};

/// Arguments of `tidegate ddl-capture`.
#[derive(Debug, Args)]
pub(super) struct DdlCapture {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Install the event triggers in the connector's database, or bring them to this version.
    Install {
        #[command(flatten)]
        target: Target,
        /// Print the SQL instead of running it.
        #[arg(long)]
        print: bool,
    },
    /// Say everything that is not as it should be; change nothing.
    Verify {
        #[command(flatten)]
        target: Target,
    },
    /// Remove the event triggers.
    Uninstall {
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Debug, Args)]
struct Target {
    /// The connector: properties, a flat JSON map, or the body of a create request. Its role is
    /// given the right to read the key of the notes.
    #[arg(required_unless_present = "connection")]
    connector: Option<PathBuf>,
    /// Connect as `postgres://user[:password]@host[:port]/database[?sslmode=…]` instead of as the
    /// connector. Without a password in it, that of the environment variable PGPASSWORD is used.
    #[arg(short, long, value_name = "ADDRESS")]
    connection: Option<String>,
    /// The role of the connector, if there is no file of it.
    #[arg(long, value_name = "ROLE", conflicts_with = "connector")]
    role: Option<String>,
}

/// Whom to connect as, and who reads the notes.
struct Resolved {
    connection: ConnectionSettings,
    role: Option<String>,
}

impl DdlCapture {
    /// Succeeds if what is asked for was done, or is as it should be.
    pub(super) async fn run(self) -> Result<ExitCode, Fault> {
        output::log_warnings();
        match self.action {
            Action::Install { target, print } => {
                let Resolved { connection, role } = target.resolve()?;
                if print {
                    output::line(&ddl::script(role.as_deref()));
                } else {
                    let done = ddl::install(&connection, role.as_deref()).await?;
                    output::line(&installed(&done, role.as_deref(), &connection.database));
                }
                Ok(ExitCode::SUCCESS)
            }
            Action::Verify { target } => {
                let Resolved { connection, role } = target.resolve()?;
                let status = ddl::verify(&connection, role.as_deref()).await?;
                output::line(&verified(&status, &connection.database));
                Ok(if status.differences.is_empty() {
                    ExitCode::SUCCESS
                } else {
                    ExitCode::FAILURE
                })
            }
            Action::Uninstall { target } => {
                let Resolved { connection, .. } = target.resolve()?;
                let was_there = ddl::uninstall(&connection).await?;
                let database = &connection.database;
                output::line(&if was_there {
                    format!(
                        "Removed the event triggers and the schema tidegate from \"{database}\". \
                         Connectors with ddl.capture=event_trigger stop."
                    )
                } else {
                    format!("Nothing was installed in \"{database}\".")
                });
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

impl Target {
    fn resolve(&self) -> Result<Resolved, Fault> {
        let own = self.connector.as_deref().map(connector_of).transpose()?;
        let role = self.role.clone().or_else(|| own.as_ref().map(|own| own.user.clone()));
        let connection = match (&self.connection, own) {
            (Some(address), own) => parse_address(address, own)?,
            (None, Some(own)) => own,
            (None, None) => {
                return Err(
                    Code::ConfigInvalid.fault("neither a connector nor --connection is given")
                );
            }
        };
        let application_name = "tidegate ddl-capture".to_owned();
        let query_timeout = Duration::from_secs(60);
        Ok(Resolved {
            connection: ConnectionSettings { application_name, query_timeout, ..connection },
            role,
        })
    }
}

fn connector_of(path: &std::path::Path) -> Result<ConnectionSettings, Fault> {
    let (_, config) = read_connector(path)?;
    let worker = assumed_worker(&Addresses::default())?;
    let connector = TypedConnector::parse(&config, &worker).map_err(|faults| summarize(&faults))?;
    match connector.source {
        SourceSettings::Postgres(settings) => Ok(settings.connection),
    }
}

fn installed(done: &ddl::Installed, role: Option<&str>, database: &str) -> String {
    let mut text = if done.before.is_absent {
        format!("Installed the event triggers in \"{database}\"")
    } else if done.before.differences.is_empty() {
        format!("The event triggers in \"{database}\" were as they should be; they are made anew")
    } else {
        let differences = done.before.differences.join("\n  ");
        format!("Mended the event triggers in \"{database}\":\n  {differences}\nThey are made anew")
    };
    text.push_str(&format!(", owned by \"{}\".\n", done.owner));
    text.push_str(
        "They are tidegate_ddl_command_end, tidegate_sql_drop and tidegate_table_rewrite, with three \
         functions and the table ddl_capture in the schema tidegate.\n",
    );
    text.push_str(&match role {
        Some(role) => format!("\"{role}\" may read the table, which has the key of the notes.\n"),
        None => "Give the connector's role the key: GRANT USAGE ON SCHEMA tidegate TO …; \
                 GRANT SELECT ON tidegate.ddl_capture TO …;\n"
            .to_owned(),
    });
    text.push_str("Set ddl.capture=event_trigger to use them.");
    text
}

fn verified(status: &CaptureStatus, database: &str) -> String {
    if status.differences.is_empty() {
        return format!("The event triggers in \"{database}\" are as they should be.");
    }
    let mut text = format!("In \"{database}\":\n  {}\n", status.differences.join("\n  "));
    text.push_str(if status.may_install {
        "This role can install them: tidegate ddl-capture install."
    } else {
        "This role cannot install them: it takes a superuser, or the role of a managed service that \
         may create event triggers (give one with --connection)."
    });
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn every_difference_is_named_and_who_can_mend_it() {
        let status = CaptureStatus {
            differences: vec!["the event trigger a is missing".to_owned(), "b".to_owned()],
            ..CaptureStatus::default()
        };
        expect![[r#"
            In "d":
              the event trigger a is missing
              b
            This role cannot install them: it takes a superuser, or the role of a managed service that may create event triggers (give one with --connection)."#]]
        .assert_eq(&verified(&status, "d"));
        assert!(verified(&CaptureStatus::default(), "d").ends_with("as they should be."));
    }
}
