//! The event triggers on the server: put there, compared with what they should be, taken away.
//!
//! Runs `schemas/postgres-ddl-capture.sql` and knows nothing of what the triggers write.
//! **Invariants:** each command is one transaction, and can be repeated; what differs is named,
//! never mended in passing.

use super::SINCE;
use super::note::Key;
use crate::error::{Code, Fault};
use crate::sources::postgres::ConnectionSettings;
use crate::sources::postgres::connection::{Connection, Purpose, Row, identifier, literal};

const SQL: &str = include_str!("../../../../schemas/postgres-ddl-capture.sql");
/// The version of functions and triggers.
const VERSION: i32 = 1;
/// Names of triggers and of the events that they are for.
const TRIGGERS: [(&str, &str); 3] = [
    ("tidegate_ddl_command_end", "ddl_command_end"),
    ("tidegate_sql_drop", "sql_drop"),
    ("tidegate_table_rewrite", "table_rewrite"),
];
const FUNCTIONS: [&str; 3] = ["describe_table", "sign_note", "capture_ddl"];
const INSTALL: &str =
    "tidegate ddl-capture install <connector file> --connection <address of a superuser>";

/// How the triggers of a database stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureStatus {
    /// Nothing of them is there.
    pub is_absent: bool,
    /// Everything that is not as it should be, each as a sentence without a stop.
    pub differences: Vec<String>,
    /// Whether the asking role may install them.
    pub may_install: bool,
}

/// What an installation did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// What was wrong or missing before.
    pub before: CaptureStatus,
    /// The role that owns the triggers.
    pub owner: String,
}

/// The statements of an installation for this role, for people who would rather run them
/// themselves.
pub fn script(reader: Option<&str>) -> String {
    let grant = reader.map_or_else(String::new, |role| {
        let role = identifier(role);
        format!(
            "\n-- The connector's role checks the signatures.\n\
             GRANT USAGE ON SCHEMA tidegate TO {role};\n\
             GRANT SELECT ON TABLE tidegate.ddl_capture TO {role};\n"
        )
    });
    format!("BEGIN;\n{SQL}{grant}COMMIT;\n")
}

/// Installs the triggers, or brings them to this version. `reader` is the connector's role.
///
/// # Errors
/// The server cannot be reached, is too old, or the role may not.
pub async fn install(
    settings: &ConnectionSettings,
    reader: Option<&str>,
) -> Result<Installed, Fault> {
    let mut control = Connection::open(settings, Purpose::Control).await?;
    refuse_old(&control)?;
    let before = examine(&mut control, reader).await?;
    let what = "installing the event triggers";
    if let Err(fault) = control.query(what, &script(reader)).await {
        return Err(explain(fault, &settings.user));
    }
    control.close().await;
    Ok(Installed { before, owner: settings.user.clone() })
}

/// Takes everything away that an installation put there; says whether there was anything.
///
/// # Errors
/// The server cannot be reached, or the role may not.
pub async fn uninstall(settings: &ConnectionSettings) -> Result<bool, Fault> {
    let mut control = Connection::open(settings, Purpose::Control).await?;
    let before = examine(&mut control, None).await?;
    let triggers: String =
        TRIGGERS.iter().map(|(name, _)| format!("DROP EVENT TRIGGER IF EXISTS {name};")).collect();
    let sql = format!(
        "BEGIN; {triggers} DROP FUNCTION IF EXISTS tidegate.capture_ddl(), \
         tidegate.sign_note(text), tidegate.describe_table(oid, text, text, integer); \
         DROP TABLE IF EXISTS tidegate.ddl_capture; DROP SCHEMA IF EXISTS tidegate; COMMIT"
    );
    if let Err(fault) = control.query("removing the event triggers", &sql).await {
        return Err(explain(fault, &settings.user));
    }
    control.close().await;
    Ok(!before.is_absent)
}

/// Compares what is installed with what should be. `reader` is the connector's role.
///
/// # Errors
/// The server cannot be asked.
pub async fn verify(
    settings: &ConnectionSettings,
    reader: Option<&str>,
) -> Result<CaptureStatus, Fault> {
    let mut control = Connection::open(settings, Purpose::Control).await?;
    let status = examine(&mut control, reader).await;
    control.close().await;
    status
}

/// What a person is told of a database: whether the triggers are there, and who could install them.
/// Nothing is told where the server cannot be asked, for that is a fault of its own.
pub async fn note(settings: &ConnectionSettings) -> Option<String> {
    let mut control = Connection::open(settings, Purpose::Control).await.ok()?;
    let is_old = refuse_old(&control).is_err();
    let status = examine(&mut control, Some(&settings.user)).await;
    control.close().await;
    let status = status.ok()?;
    Some(if is_old {
        format!("ddl.capture: event triggers reach the stream from PostgreSQL {SINCE} on")
    } else if status.differences.is_empty() {
        "ddl.capture: the event triggers are installed".to_owned()
    } else {
        let state = if status.is_absent {
            "no event triggers are installed".to_owned()
        } else {
            format!("the event triggers are not in order ({})", status.differences.join("; "))
        };
        let who = if status.may_install {
            "this role can install them"
        } else {
            "installing them takes a superuser, or a managed service's role that may create event \
             triggers (tidegate ddl-capture install … --connection)"
        };
        format!("ddl.capture: {state}; {who}")
    })
}

/// Refuses to go on without the triggers.
///
/// # Errors
/// `DDL-CAPTURE`, with every difference; `SERVER-VERSION`.
pub(in crate::sources::postgres) async fn require(
    control: &mut Connection,
    role: &str,
) -> Result<(), Fault> {
    refuse_old(control)?;
    let status = examine(control, Some(role)).await?;
    if status.is_absent {
        return Err(Code::DdlCapture
            .fault("ddl.capture=event_trigger, and the event triggers are not installed")
            .hint(format!("{INSTALL}; or set ddl.capture=off.")));
    }
    if status.differences.is_empty() {
        return Ok(());
    }
    Err(Code::DdlCapture
        .fault(format!(
            "the event triggers are not as they should be: {}",
            status.differences.join("; ")
        ))
        .hint(format!("{INSTALL} mends it; or set ddl.capture=off.")))
}

/// What the connector's role holds signatures against.
///
/// # Errors
/// The server cannot be asked, or has no key.
pub(in crate::sources::postgres) async fn read_key(control: &mut Connection) -> Result<Key, Fault> {
    let sql = "SELECT encode(key, 'hex') FROM tidegate.ddl_capture";
    let row = control.query_one("reading the key of the event triggers", sql).await?;
    let digits = row.text(0)?.as_bytes();
    let bytes: Option<Vec<u8>> = digits
        .chunks(2)
        .map(|pair| {
            std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok())
        })
        .collect();
    let bytes = bytes.filter(|bytes| !bytes.is_empty());
    bytes
        .map(|bytes| Key::new(&bytes))
        .ok_or_else(|| Code::DdlCapture.fault("the key of the event triggers is empty"))
}

fn refuse_old(control: &Connection) -> Result<(), Fault> {
    let version = control.version();
    if version.major() >= SINCE {
        return Ok(());
    }
    Err(Code::ServerVersion.fault(format!(
        "event triggers reach the stream from version {SINCE} on; the server has {version}"
    )))
}

/// The rights are the server's to judge: providers let roles of their own create event triggers.
fn explain(fault: Fault, role: &str) -> Fault {
    if fault.code() != Code::ReplicationPermission {
        return fault;
    }
    fault.hint(format!(
        "Creating event triggers needs a superuser, or the role by which a managed service lets its \
         customers do it (rds_superuser, cloudsqlsuperuser, azure_pg_admin, …); \"{role}\" is none. \
         Give one with --connection."
    ))
}

async fn examine(control: &mut Connection, reader: Option<&str>) -> Result<CaptureStatus, Fault> {
    let what = "reading the event triggers";
    let server = control.query_one(what, SERVER_QUERY).await?;
    let triggers = control.query(what, TRIGGER_QUERY).await?;
    let functions = control.query(what, FUNCTION_QUERY).await?;
    let mut status = CaptureStatus { may_install: server.is_true(0)?, ..CaptureStatus::default() };
    let has_key = server.is_true(1)?;
    if triggers.is_empty() && functions.is_empty() && !has_key {
        status.is_absent = true;
        status.differences.push("nothing is installed".to_owned());
        return Ok(status);
    }
    let differences = &mut status.differences;
    if !server.is_true(2)? {
        differences.push("event_triggers is off".to_owned());
    }
    for (name, event) in TRIGGERS {
        differences.extend(trigger_difference(&triggers, name, event)?);
    }
    for name in FUNCTIONS {
        differences.extend(function_differences(&functions, name)?);
    }
    differences.extend(key_difference(control, has_key, reader).await?);
    Ok(status)
}

/// Before 17 there is no such setting, and nothing to switch off.
const SERVER_QUERY: &str = "\
    SELECT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) \
    OR EXISTS (SELECT FROM pg_roles WHERE rolname IN \
        ('rds_superuser', 'cloudsqlsuperuser', 'azure_pg_admin', 'alloydbsuperuser') \
        AND pg_has_role(current_user, oid, 'USAGE')), \
    EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
        WHERE n.nspname = 'tidegate' AND c.relname = 'ddl_capture'), \
    coalesce(current_setting('event_triggers', true), 'on') = 'on'";

const TRIGGER_QUERY: &str = "\
    SELECT t.evtname, t.evtevent, t.evtenabled, t.evttags IS NULL, \
    p.proname = 'capture_ddl' AND n.nspname = 'tidegate', \
    t.evtowner = p.proowner, o.rolname, f.rolname \
    FROM pg_event_trigger t JOIN pg_proc p ON p.oid = t.evtfoid \
    JOIN pg_namespace n ON n.oid = p.pronamespace \
    JOIN pg_roles o ON o.oid = t.evtowner JOIN pg_roles f ON f.oid = p.proowner \
    WHERE t.evtname LIKE 'tidegate\\_%'";

/// An empty list of rights means the default ones, by which everybody may execute functions.
const FUNCTION_QUERY: &str = "\
    SELECT p.proname, p.prosrc, p.prosecdef, \
    coalesce(array_to_string(p.proconfig, ', '), ''), \
    p.proacl IS NULL OR EXISTS (SELECT FROM aclexplode(p.proacl) a WHERE a.grantee = 0) \
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'tidegate'";

fn trigger_difference(rows: &[Row], name: &str, event: &str) -> Result<Option<String>, Fault> {
    let found = find(rows, name)?;
    let Some(row) = found else { return Ok(Some(format!("the event trigger {name} is missing"))) };
    let difference = if row.text(1)? != event || !row.is_true(3)? {
        format!("the event trigger {name} is for other events than {event}")
    } else if !row.is_true(4)? {
        format!("the event trigger {name} runs another function than tidegate.capture_ddl()")
    } else if row.text(2)? == "D" {
        format!("the event trigger {name} is disabled")
    } else if row.text(2)? != "A" {
        format!("the event trigger {name} is not ENABLE ALWAYS, so some sessions do without it")
    } else if !row.is_true(5)? {
        let (trigger, function) = (row.text(6)?, row.text(7)?);
        format!("wrong owner: \"{trigger}\" has {name}, \"{function}\" has its function")
    } else {
        return Ok(None);
    };
    Ok(Some(difference))
}

fn function_differences(rows: &[Row], name: &str) -> Result<Vec<String>, Fault> {
    let Some(row) = find(rows, name)? else {
        return Ok(vec![format!("the function tidegate.{name} is missing")]);
    };
    let mut found = Vec::new();
    if body(name).is_none_or(|body| row.bytes(1).ok().flatten() != Some(body.as_bytes())) {
        found.push(format!("the function tidegate.{name} has another body than this version's"));
    }
    let is_entry = name == "capture_ddl";
    if row.is_true(2)? != is_entry {
        found.push(format!("the function tidegate.{name} runs with other rights"));
    }
    // the others run inside of it
    if is_entry && !row.text(3)?.starts_with("search_path=pg_catalog, pg_temp") {
        found.push(format!("the function tidegate.{name} has no fixed search_path"));
    }
    if row.is_true(4)? {
        found.push(format!("everybody may execute tidegate.{name}"));
    }
    Ok(found)
}

async fn key_difference(
    control: &mut Connection,
    has_key: bool,
    reader: Option<&str>,
) -> Result<Option<String>, Fault> {
    if !has_key {
        return Ok(Some("the table tidegate.ddl_capture is missing".to_owned()));
    }
    let role = reader.map_or_else(|| "current_user".to_owned(), literal);
    let may_read = |role: &str| {
        format!(
            "coalesce((SELECT has_schema_privilege(r.oid, n.oid, 'USAGE') \
             AND has_table_privilege(r.oid, c.oid, 'SELECT') \
             FROM pg_roles r WHERE r.rolname = {role}), false)"
        )
    };
    let sql = format!(
        "SELECT {}, EXISTS (SELECT FROM aclexplode(c.relacl) a WHERE a.grantee = 0), {} \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = 'tidegate' AND c.relname = 'ddl_capture'",
        may_read(&role),
        may_read("current_user"),
    );
    let what = "reading who has the key of the event triggers";
    let row = control.query_one(what, &sql).await?;
    if row.is_true(1)? {
        return Ok(Some("everybody may read tidegate.ddl_capture, and so forge notes".to_owned()));
    }
    if !row.is_true(0)? {
        let reader = reader.unwrap_or("this role");
        return Ok(Some(format!("the role '{reader}' may not read tidegate.ddl_capture")));
    }
    if !row.is_true(2)? {
        return Ok(None);
    }
    let rows = control.query(what, "SELECT version FROM tidegate.ddl_capture").await?;
    let [row] = rows.as_slice() else {
        return Ok(Some("tidegate.ddl_capture has not exactly one row".to_owned()));
    };
    let version: i32 = row.parse_as(0)?;
    Ok((version != VERSION)
        .then(|| format!("version {version} is installed; this program's is {VERSION}")))
}

fn find<'r>(rows: &'r [Row], name: &str) -> Result<Option<&'r Row>, Fault> {
    for row in rows {
        if row.text(0)? == name {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// The body that a function should have.
fn body(name: &str) -> Option<&'static str> {
    let (_, rest) = SQL.split_once(&format!("FUNCTION tidegate.{name}("))?;
    let mut parts = rest.split("$body$");
    parts.next()?;
    parts.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_has_each_function_and_trigger() {
        for name in FUNCTIONS {
            assert!(body(name).is_some_and(|body| body.len() > 100), "{name}");
        }
        for (name, event) in TRIGGERS {
            assert!(SQL.contains(&format!("CREATE EVENT TRIGGER {name} ON {event} ")), "{name}");
            assert!(SQL.contains(&format!("ALTER EVENT TRIGGER {name} ENABLE ALWAYS")), "{name}");
        }
        assert!(SQL.contains(&format!("SET version = {VERSION};")));
    }

    #[test]
    fn the_reader_is_quoted() {
        assert!(script(Some("a\"b")).contains("TO \"a\"\"b\";"));
        assert!(!script(None).contains("GRANT"));
    }
}
