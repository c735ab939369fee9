//! What is planned, and what is found wanting.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::config::Secret;
use crate::plan::KeyValueMode;
use crate::sources::postgres::ddl::DdlSettings;
use crate::sources::postgres::key_rules::KeyRules;
use crate::sources::postgres::{
    ConnectionSettings, KeyChangeToast, MessageFilter, OffsetMismatch, RowFilters, SlotUse,
    SnapshotMode, SnapshotOrder, SslMode, TableFilter, ToastMode,
};

pub(in crate::sources::postgres) fn settings(
    mode: PublicationAutocreate,
    via_root: bool,
) -> Settings {
    let limit = Duration::from_secs(1);
    Settings {
        connection: ConnectionSettings {
            host: "h".to_owned(),
            port: 1,
            user: "u".to_owned(),
            password: Secret::new(""),
            database: "d".to_owned(),
            sslmode: SslMode::Disable,
            sslrootcert: None,
            sslcert: None,
            sslkey: None,
            tcp_keepalive: false,
            connect_timeout: limit,
            query_timeout: limit,
            application_name: "a".to_owned(),
        },
        slot_name: "s".to_owned(),
        publication_name: "p".to_owned(),
        publication_autocreate: mode,
        messages: MessageFilter::default(),
        publish_via_partition_root: via_root,
        snapshot_mode: SnapshotMode::Initial,
        snapshot_threads: 1,
        snapshot_order: SnapshotOrder::Names,
        snapshot_delay: Duration::ZERO,
        snapshot_queries: BTreeMap::new(),
        offset_mismatch: OffsetMismatch::Stop,
        slot_use: SlotUse::default(),
        tables: TableFilter::default(),
        toast: ToastMode::Backfill,
        key_change_toast: KeyChangeToast::Sentinel,
        hstore: KeyValueMode::Json,
        key_rules: KeyRules::default(),
        ddl: DdlSettings::default(),
        probe_interval: limit,
        row_filters: RowFilters::default(),
        status_interval: limit,
        slot_max_retries: 0,
        slot_retry_delay: limit,
        slot_health_interval: limit,
        slot_retained_warning: 0,
        snapshot_include: None,
        chunk_rows: 1024,
        trial: None,
    }
}

fn relation(oid: u32, name: &str, kind: RelationKind) -> RelationEntry {
    RelationEntry {
        oid,
        namespace: "public".to_owned(),
        name: name.to_owned(),
        kind,
        is_logged: true,
        partition_of: None,
    }
}

/// `t`, and `r` whose only partition is `r_1`.
fn selection() -> Selection {
    let leaf = RelationEntry { partition_of: Some(2), ..relation(3, "r_1", RelationKind::Table) };
    let table = relation(1, "t", RelationKind::Table);
    Selection {
        captured: vec![table.clone(), leaf],
        published: vec![table, relation(2, "r", RelationKind::Partitioned)],
        accountable: Vec::new(),
        pushed: BTreeMap::new(),
        signals: None,
        warnings: Vec::new(),
    }
}

fn member(oid: u32) -> Member {
    let (namespace, name) = ("public".to_owned(), "t".to_owned());
    Member { oid, entry: 1, namespace, name, row_filter: None, column_list: None }
}

fn complete() -> PublicationFacts {
    let name = |oid, table: &str| {
        let (namespace, name) = ("public".to_owned(), table.to_owned());
        PublishedName { oid, namespace, name }
    };
    PublicationFacts {
        operations: vec!["insert", "update", "delete"],
        members: vec![member(1), member(2)],
        names: vec![name(1, "t"), name(3, "r_1")],
        ..PublicationFacts::default()
    }
}

#[track_caller]
fn check_plan(
    mode: PublicationAutocreate,
    facts: Option<&PublicationFacts>,
    expect: Result<Option<&str>, Code>,
) {
    let planned = plan(&settings(mode, false), facts, &selection(), false);
    let statement = planned.map(|change| change.map(|change| change.statement));
    assert_eq!(
        statement.map_err(|fault| fault.code()),
        expect.map(|statement| statement.map(str::to_owned))
    );
}

const CREATED: &str = r#"CREATE PUBLICATION "p" FOR TABLE ONLY "public"."t", "public"."r""#;

#[test]
fn publications_are_created_as_the_mode_says() {
    use PublicationAutocreate::{AllTables, Disabled, Filtered, NoTables};
    check_plan(Filtered, None, Ok(Some(CREATED)));
    check_plan(AllTables, None, Ok(Some(r#"CREATE PUBLICATION "p" FOR ALL TABLES"#)));
    check_plan(NoTables, None, Ok(Some(r#"CREATE PUBLICATION "p""#)));
    check_plan(Disabled, None, Err(Code::PublicationMissing));
    let fault = plan(&settings(Disabled, false), None, &selection(), false).expect_err("no");
    assert!(fault.to_string().contains(CREATED), "{fault}");
    let by_root = plan(&settings(Filtered, true), None, &selection(), false).expect("planned");
    let statement = by_root.expect("a change").statement;
    assert!(statement.ends_with("WITH (publish_via_partition_root = true)"), "{statement}");
}

#[test]
fn publications_are_extended_only_where_something_is_missing() {
    use PublicationAutocreate::{AllTables, Disabled, Filtered};
    check_plan(Filtered, Some(&complete()), Ok(None));
    let mut lacking = complete();
    lacking.members.remove(1);
    check_plan(
        Filtered,
        Some(&lacking),
        Ok(Some(r#"ALTER PUBLICATION "p" ADD TABLE "public"."r""#)),
    );
    check_plan(AllTables, Some(&lacking), Ok(None));
    check_plan(Disabled, Some(&lacking), Ok(None));
    lacking.scope = Scope::AllTables;
    check_plan(Filtered, Some(&lacking), Ok(None));
    let by_schema =
        PublicationFacts { schemas: vec!["public".to_owned()], ..PublicationFacts::default() };
    check_plan(Filtered, Some(&by_schema), Ok(None));
}

#[test]
fn nothing_is_created_that_a_slot_would_look_for_in_the_past() {
    let settings = settings(PublicationAutocreate::Filtered, false);
    let fault = plan(&settings, None, &selection(), true).expect_err("refused");
    assert_eq!(fault.code(), Code::PublicationMissing);
    assert_eq!(plan(&settings, Some(&complete()), &selection(), true), Ok(None));
}

#[track_caller]
fn check(via_root: bool, change: impl FnOnce(&mut PublicationFacts), words: Option<&str>) {
    let mut facts = complete();
    change(&mut facts);
    let settings = settings(PublicationAutocreate::Disabled, via_root);
    let faults = check_all(&settings, &facts, &selection());
    assert_eq!(faults.len(), usize::from(words.is_some()), "{faults:?}");
    if let (Some(fault), Some(words)) = (faults.first(), words) {
        assert_eq!(fault.code(), Code::PublicationChanged);
        assert!(fault.to_string().contains(words), "{fault}");
    }
}

#[test]
fn what_a_publication_hides_is_told() {
    check(false, |_| {}, None);
    check(false, |facts| facts.operations.truncate(1), Some("leaves out update, delete"));
    check(false, |facts| facts.names.truncate(1), Some("\"public.r_1\" is captured"));
    check(false, |facts| facts.via_root = true, Some("publish.via.partition.root=true"));
    check(true, |_| {}, Some("publish_via_partition_root = true"));
    let filter = |facts: &mut PublicationFacts| {
        facts.members[0].row_filter = Some("(id > 0)".to_owned());
    };
    check(false, filter, Some("a row filter"));
    let columns = |facts: &mut PublicationFacts| {
        facts.members[0].column_list = Some("1 2".to_owned());
    };
    check(false, columns, Some("a column list"));
    let of_another = |facts: &mut PublicationFacts| {
        facts.members.push(Member { row_filter: Some("x".to_owned()), ..member(9) });
    };
    check(false, of_another, None);
    // renamed between the two reads
    let renamed = |facts: &mut PublicationFacts| {
        "u".clone_into(&mut facts.members[0].name);
        "u".clone_into(&mut facts.names[0].name);
    };
    check(false, renamed, None);
    // and back, behind its entry
    let renamed_behind = |facts: &mut PublicationFacts| {
        "u".clone_into(&mut facts.names[0].name);
    };
    check(false, renamed_behind, None);
    let lost = |facts: &mut PublicationFacts| {
        "u".clone_into(&mut facts.members[0].name);
        facts.names.remove(0);
    };
    check(false, lost, Some("\"public.t\" is captured"));
}

#[test]
fn the_fingerprint_is_pinned_and_everything_that_decides_is_in_it() {
    assert_eq!(complete().fingerprint(), 11_019_773_101_303_978_279);
    let mut seen = HashSet::from([complete().fingerprint()]);
    let changes: [fn(&mut PublicationFacts); 7] = [
        |facts| facts.scope = Scope::AllTables,
        |facts| facts.operations.truncate(2),
        |facts| facts.via_root = true,
        |facts| facts.generated = true,
        |facts| facts.members.truncate(1),
        |facts| facts.members[0].row_filter = Some("x".to_owned()),
        |facts| facts.members[0].column_list = Some("x".to_owned()),
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut changed = complete();
        change(&mut changed);
        assert!(seen.insert(changed.fingerprint()), "change {number}");
    }
    let mut reordered = complete();
    reordered.members.reverse();
    reordered.names.clear();
    assert_eq!(reordered.fingerprint(), complete().fingerprint());
}
