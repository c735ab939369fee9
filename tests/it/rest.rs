//! Connect's REST API against a worker whose tasks do nothing: bodies, codes, leniencies.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use tidegate::config::{ConnectorConfig, TopicTracking, Validation};
use tidegate::error::{Code, Fault};
use tidegate::herder::{Standalone, Store};
use tidegate::observe::{ChunkProgress, Level, Loggers, Observer, TableProgress};
use tidegate::rest::{Api, Identity, router};
use tidegate::worker::{
    BoxFuture, Runtime, SnapshotRequest, SnapshotTable, Target, TaskHandle, TaskState,
    WrittenTopics,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Accepts every configuration but those with a key `bad`; a task with a key `fail` fails, one with
/// a key `lingers` ends only when `LINGERING` has a permit.
#[derive(Debug)]
struct Idle;

static LINGERING: Semaphore = Semaphore::const_new(0);

impl Runtime for Idle {
    fn validate<'a>(&'a self, config: &'a ConnectorConfig) -> BoxFuture<'a, Vec<Fault>> {
        Box::pin(async move {
            let bad = |_: &Option<String>| {
                vec![
                    Code::ConfigInvalid.fault("one thing is wrong"),
                    Code::ConfigUnknownKey.fault("another is unknown"),
                ]
            };
            if config.contains_key("slow") {
                // others get their turn meanwhile
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
            }
            config.get("bad").map(bad).unwrap_or_default()
        })
    }

    fn describe<'a>(&'a self, config: &'a ConnectorConfig) -> BoxFuture<'a, Validation> {
        Box::pin(async move {
            let mut validation = Validation {
                error_count: 0,
                groups: vec!["Common"],
                configs: Vec::new(),
                notes: Vec::new(),
            };
            for fault in self.validate(config).await {
                validation.blame("bad", fault.to_string());
            }
            validation
        })
    }

    fn offset<'a>(
        &'a self,
        _: &'a ConnectorConfig,
    ) -> BoxFuture<'a, Result<Option<(Value, Value)>, Fault>> {
        Box::pin(async { Ok(Some((json!({"server": "p"}), json!({"lsn": 7})))) })
    }

    fn reset_offset<'a>(&'a self, _: &'a ConnectorConfig) -> BoxFuture<'a, Result<(), Fault>> {
        Box::pin(async { Ok(()) })
    }

    fn check_release<'a>(
        &'a self,
        config: &'a ConnectorConfig,
        others: &'a [(String, ConnectorConfig)],
    ) -> BoxFuture<'a, Result<(), Fault>> {
        let shared = |(_, other): &&(String, ConnectorConfig)| {
            config.contains_key("slot.name") && config.get("slot.name") == other.get("slot.name")
        };
        let user = others.iter().find(shared).map(|(name, _)| name.clone());
        Box::pin(async move {
            user.map_or(Ok(()), |name| Err(Code::SourceShared.fault(format!("{name} uses it"))))
        })
    }

    fn release<'a>(&'a self, config: &'a ConnectorConfig) -> BoxFuture<'a, Result<(), Fault>> {
        let refuses =
            config.get("topic.prefix").is_some_and(|prefix| prefix.as_deref() == Some("kept"));
        Box::pin(async move {
            if refuses { Err(Code::SlotActive.fault("somebody uses it")) } else { Ok(()) }
        })
    }

    fn take_over<'a>(
        &'a self,
        _: &'a ConnectorConfig,
        _: &'a Value,
        offset: &'a Value,
    ) -> BoxFuture<'a, Result<(), Fault>> {
        let outcome = match offset.get("lsn_proc") {
            Some(_) => Ok(()),
            None => Err(Code::OffsetImport.fault("it is no such offset")),
        };
        Box::pin(async { outcome })
    }

    fn foresee<'a>(&'a self, config: &'a ConnectorConfig) -> BoxFuture<'a, Option<Fault>> {
        let is_other = config.get("row.filter.public.t").is_some_and(Option::is_some);
        let fault = || Code::FilterChanged.fault("public.t: it is another one");
        Box::pin(async move { is_other.then(fault) })
    }

    fn adopt_filters<'a>(
        &'a self,
        _: &'a ConnectorConfig,
        resnapshot: bool,
    ) -> BoxFuture<'a, Result<usize, Fault>> {
        Box::pin(async move { Ok(1 + usize::from(resnapshot)) })
    }

    fn stored_snapshot<'a>(
        &'a self,
        config: &'a ConnectorConfig,
    ) -> BoxFuture<'a, Result<Option<ChunkProgress>, Fault>> {
        let table = |_: &Option<String>| ChunkProgress {
            id: "filter".to_owned(),
            tables: vec![TableProgress {
                table: "public.t".to_owned(),
                state: "waiting",
                ..TableProgress::default()
            }],
            ..ChunkProgress::default()
        };
        Box::pin(async move { Ok(config.get("pending").map(table)) })
    }

    fn plan_snapshot<'a>(
        &'a self,
        _: &'a ConnectorConfig,
        request: &'a SnapshotRequest,
    ) -> BoxFuture<'a, Result<Vec<SnapshotTable>, Fault>> {
        Box::pin(async move {
            if !request.collections.iter().any(|pattern| pattern.is_match("public.t")) {
                return Err(Code::TableMissing.fault("no such table"));
            }
            let condition = request.conditions.first().map(|(_, text)| text.clone());
            let (namespace, name) = ("public".to_owned(), "t".to_owned());
            Ok(vec![SnapshotTable { namespace, name, condition, estimate: None }])
        })
    }

    fn start(
        &self,
        _: &str,
        config: &ConnectorConfig,
        target: Target,
        _: WrittenTopics,
    ) -> Result<TaskHandle, Fault> {
        let (fails, lingers) = (config.contains_key("fail"), config.contains_key("lingers"));
        Ok(TaskHandle::spawn(target, move |mut control| async move {
            loop {
                let target = *control.target.borrow_and_update();
                if lingers && target == Target::Stopped {
                    drop(LINGERING.acquire().await);
                }
                control.state.send_replace(match target {
                    Target::Stopped => return,
                    Target::Paused => TaskState::Paused,
                    Target::Started if fails => {
                        TaskState::Failed(Code::SlotGap.fault("the slot moved on"))
                    }
                    Target::Started => TaskState::Running { waiting: None },
                });
                if control.target.changed().await.is_err() {
                    return;
                }
            }
        }))
    }
}

struct Server {
    address: std::net::SocketAddr,
    directory: PathBuf,
    serving: tokio::task::JoinHandle<()>,
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }
}

impl Server {
    async fn start(name: &str) -> Self {
        let directory =
            std::env::temp_dir().join(format!("tidegate-rest-{}-{name}", std::process::id()));
        drop(std::fs::remove_dir_all(&directory));
        Self::start_in(directory).await
    }

    async fn start_in(directory: PathBuf) -> Self {
        let topic_tracking = TopicTracking { enabled: true, allows_reset: true };
        Self::start_with(directory, topic_tracking).await
    }

    async fn start_with(directory: PathBuf, topic_tracking: TopicTracking) -> Self {
        let store = Store::open(&directory).unwrap();
        let herder = Arc::new(Standalone::open(Arc::new(Idle), store).unwrap());
        let (_, kafka_cluster_id) = tokio::sync::watch::channel(Some("cluster".to_owned()));
        let identity = Identity {
            worker_id: "127.0.0.1:8083".to_owned(),
            version: "1.2.3",
            commit: "unknown",
            kafka_cluster_id,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = router(Api {
            herder,
            identity: Arc::new(identity),
            observer: Observer::default(),
            loggers: Arc::new(Loggers::new(Level::Info, Box::new(|_| {}))),
            topic_tracking,
        });
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, directory, serving }
    }

    /// Ends it, so that another may have its directory.
    async fn stop(self) -> PathBuf {
        self.serving.abort();
        drop(self.serving.await);
        self.directory
    }

    async fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: worker:8083\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    async fn json(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(method, path, "Content-Type: application/json\r\n", &body.to_string()).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "").await
    }

    async fn wait_for_task_state(&self, name: &str, wanted: &str) -> Value {
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
        loop {
            let status = self.get(&format!("/connectors/{name}/status")).await.json();
            if status["tasks"][0]["state"] == wanted {
                return status;
            }
            assert!(tokio::time::Instant::now() < deadline, "{status}");
            tokio::task::yield_now().await;
        }
    }
}

fn create(name: &str) -> Value {
    json!({"name": name, "config": {"connector.class": "Postgres", "tasks.max": 1}})
}

#[tokio::test]
async fn what_a_connector_made_goes_with_it_only_if_that_is_asked_for() {
    let server = Server::start("drop").await;
    let kept = json!({"name": "kept", "config": {"connector.class": "P", "topic.prefix": "kept"}});
    assert_eq!(server.json("POST", "/connectors", &kept).await.status, 201);
    let answer = server.send("DELETE", "/connectors/kept?drop=slot", "", "").await;
    assert_eq!(answer.status, 400, "{}", answer.body);
    server.wait_for_task_state("kept", "RUNNING").await;
    // What cannot be removed keeps the connector, stopped, so that it can be tried again.
    let answer = server.send("DELETE", "/connectors/kept?drop=source,offsets", "", "").await;
    assert_eq!(answer.status, 409, "{}", answer.body);
    assert!(answer.body.contains("TG-E-SLOT-ACTIVE"), "{}", answer.body);
    let status = server.get("/connectors/kept/status").await.json();
    assert_eq!(status["connector"]["state"], "STOPPED");
    assert_eq!(server.send("DELETE", "/connectors/kept?drop=offsets", "", "").await.status, 204);
    assert_eq!(server.get("/connectors/kept").await.status, 404);
}

#[tokio::test]
async fn what_another_connector_uses_is_not_taken_away() {
    let server = Server::start("shared").await;
    for name in ["one", "two"] {
        let config = json!({"connector.class": "P", "slot.name": "s"});
        let body = json!({"name": name, "config": config});
        assert_eq!(server.json("POST", "/connectors", &body).await.status, 201);
    }
    server.wait_for_task_state("one", "RUNNING").await;
    let answer = server.send("DELETE", "/connectors/one?drop=source,offsets", "", "").await;
    assert_eq!(answer.status, 409, "{}", answer.body);
    assert!(answer.body.contains("TG-E-SOURCE-SHARED"), "{}", answer.body);
    assert!(answer.body.contains("two uses it"), "{}", answer.body);
    // nothing was done: it runs as before
    server.wait_for_task_state("one", "RUNNING").await;
    assert_eq!(server.send("DELETE", "/connectors/two", "", "").await.status, 204);
    let answer = server.send("DELETE", "/connectors/one?drop=source", "", "").await;
    assert_eq!(answer.status, 204, "{}", answer.body);
}

#[tokio::test]
async fn changes_of_a_configuration_at_once_are_all_kept() {
    let server = Server::start("patches").await;
    let body = json!({"name": "c", "config": {"connector.class": "P", "slow": "yes"}});
    assert_eq!(server.json("POST", "/connectors", &body).await.status, 201);
    let patch = async |key: &str| {
        let answer = server.json("PATCH", "/connectors/c/config", &json!({ key: "1" })).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    };
    let keys = ["key.0", "key.1", "key.2", "key.3"];
    tokio::join!(patch(keys[0]), patch(keys[1]), patch(keys[2]), patch(keys[3]));
    let config = server.get("/connectors/c/config").await.json();
    for key in keys {
        assert_eq!(config[key], "1", "{config}");
    }
    // whoever changes a connector does not make one that was deleted meanwhile
    let change = json!({"key.0": "2"});
    let patch = server.json("PATCH", "/connectors/c/config", &change);
    let (patched, deleted) = tokio::join!(patch, server.send("DELETE", "/connectors/c", "", ""));
    assert_eq!(deleted.status, 204, "{}", deleted.body);
    assert!([200, 404].contains(&patched.status), "{}", patched.body);
    assert_eq!(server.get("/connectors").await.json(), json!([]));
}

#[tokio::test]
async fn what_was_asked_for_is_done_to_its_end_though_the_client_has_gone_and_others_do_not_wait() {
    let server = Server::start("gone").await;
    let body = json!({"name": "l", "config": {"connector.class": "P", "lingers": "x"}});
    assert_eq!(server.json("POST", "/connectors", &body).await.status, 201);
    server.wait_for_task_state("l", "RUNNING").await;
    let mut client = TcpStream::connect(server.address).await.unwrap();
    let request = b"PUT /connectors/l/stop HTTP/1.1\r\nHost: w\r\nContent-Length: 0\r\n\r\n";
    client.write_all(request).await.unwrap();
    // it is under way: the task is being waited for
    while server.get("/connectors/l/status").await.json()["tasks"][0]["state"] == "RUNNING" {}
    // others do not wait for it
    assert_eq!(server.json("POST", "/connectors", &create("other")).await.status, 201);
    assert_eq!(server.send("PUT", "/connectors/other/pause", "", "").await.status, 202);
    server.wait_for_task_state("other", "PAUSED").await;
    drop(client);
    // the server hears of that before these are through
    for _ in 0..20 {
        server.get("/connectors").await;
    }
    LINGERING.add_permits(1);
    assert_eq!(server.send("PUT", "/connectors/l/resume", "", "").await.status, 202);
    server.wait_for_task_state("l", "RUNNING").await;
}

#[tokio::test]
async fn a_changed_row_filter_is_told_with_the_answer() {
    let server = Server::start("filter-notes").await;
    assert_eq!(server.json("POST", "/connectors", &create("f")).await.status, 201);
    let path = "/connectors/f/config";
    let other = server.json("PATCH", path, &json!({"x": "1"})).await;
    assert_eq!((other.status, other.json().get("notes")), (200, None));
    let patch = json!({"row.filter.public.t": "a = 1"});
    for is_told in [true, false] {
        let answer = server.json("PATCH", path, &patch).await.json();
        let notes = answer["notes"].to_string();
        assert_eq!(notes.contains("TG-E-FILTER-CHANGED: public.t"), is_told, "{notes}");
    }
    assert_eq!(server.send("PUT", "/connectors/f/stop", "", "").await.status, 204);
    let json = "content-type: application/json\r\n";
    let answer = server.send("PUT", "/connectors/f/row-filters", json, r#"{"mode": "all"}"#).await;
    assert!(answer.body.contains("docs/filters.md"), "{}", answer.body);
    std::fs::remove_dir_all(&server.directory).unwrap();
}

#[tokio::test]
async fn a_connector_lives_through_connects_paths_with_connects_codes() {
    let server = Server::start("life").await;
    let answer = server.get("/").await;
    assert_eq!(
        answer.json(),
        json!({"version": "1.2.3", "commit": "unknown", "kafka_cluster_id": "cluster"})
    );
    assert_eq!(server.get("/health").await.json()["status"], "healthy");

    let answer = server.json("POST", "/connectors", &create("my orders")).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    assert!(
        answer.head.contains("location: http://worker:8083/connectors/my%20orders"),
        "{}",
        answer.head
    );
    assert_eq!(
        answer.json(),
        json!({
            "name": "my orders",
            "config": {"connector.class": "Postgres", "tasks.max": "1", "name": "my orders"},
            "tasks": [{"connector": "my orders", "task": 0}],
            "type": "source",
        })
    );
    assert_eq!(server.json("POST", "/connectors", &create("my orders")).await.status, 409);
    assert_eq!(server.get("/connectors/").await.json(), json!(["my orders"]));

    let path = "/connectors/my%20orders";
    let status = server.wait_for_task_state("my%20orders", "RUNNING").await;
    assert_eq!(status["connector"]["state"], "RUNNING");
    assert_eq!(status["connector"]["worker_id"], "127.0.0.1:8083");
    assert_eq!(status["tasks"][0]["version"], "1.2.3");
    assert_eq!(server.get(&format!("{path}/tasks/0/status")).await.json()["id"], 0);
    assert_eq!(server.get(&format!("{path}/tasks/7/status")).await.status, 404);

    assert_eq!(server.send("PUT", &format!("{path}/pause"), "", "").await.status, 202);
    server.wait_for_task_state("my%20orders", "PAUSED").await;
    assert_eq!(server.send("PUT", &format!("{path}/resume"), "", "").await.status, 202);
    server.wait_for_task_state("my%20orders", "RUNNING").await;
    let offsets = format!("{path}/offsets");
    assert_eq!(
        server.get(&offsets).await.json(),
        json!({"offsets": [{"partition": {"server": "p"}, "offset": {"lsn": 7}}]})
    );
    assert_eq!(server.send("DELETE", &offsets, "", "").await.status, 400);
    let filters = format!("{path}/row-filters");
    let (json, from_now) = ("Content-Type: application/json\r\n", r#"{"mode": "from_now"}"#);
    assert_eq!(server.send("PUT", &filters, json, from_now).await.status, 400);
    assert_eq!(server.send("PUT", &format!("{path}/stop"), "", "").await.status, 204);
    assert_eq!(server.send("PUT", &filters, json, from_now).await.json()["tables"], json!(1));
    for body in ["{}", r#"{"mode": "all"}"#, r#"{"mode": "from_now", "x": 1}"#] {
        assert_eq!(server.send("PUT", &filters, json, body).await.status, 400, "{body}");
    }
    assert_eq!(server.send("DELETE", &offsets, "", "").await.status, 200);
    let status = server.get(&format!("{path}/status")).await.json();
    assert_eq!((&status["connector"]["state"], &status["tasks"]), (&json!("STOPPED"), &json!([])));
    assert_eq!(server.send("PUT", &format!("{path}/resume"), "", "").await.status, 202);

    let config = json!({"connector.class": "Postgres", "tasks.max": "2"});
    assert_eq!(server.json("PUT", &format!("{path}/config"), &config).await.status, 200);
    let patch = json!({"tasks.max": null, "x": "1"});
    let answer = server.json("PATCH", &format!("{path}/config"), &patch).await;
    assert_eq!(
        answer.json()["config"],
        json!({"connector.class": "Postgres", "name": "my orders", "x": "1"})
    );

    assert_eq!(server.send("POST", &format!("{path}/restart"), "", "").await.status, 204);
    let answer = server
        .send("POST", &format!("{path}/restart?includeTasks=True&onlyFailed=false"), "", "")
        .await;
    assert_eq!((answer.status, &answer.json()["name"]), (202, &json!("my orders")));
    assert_eq!(server.send("DELETE", path, "", "").await.status, 204);
    assert_eq!(server.get(&format!("{path}/status")).await.status, 404);
    std::fs::remove_dir_all(&server.directory).unwrap();
}

#[tokio::test]
async fn bad_requests_are_answered_with_a_sentence_and_never_with_500() {
    let server = Server::start("bad").await;
    let json_type = "Content-Type: application/json\r\n";
    for (body, expected) in [
        ("{", "not JSON"),
        (r#"{"name":"a","config":{"k":["x"]}}"#, "'k' is a nested JSON value"),
        (r#"{"name":"a"}"#, "'config' is missing"),
        (r#"{"name":"","config":{}}"#, "must not be empty"),
        (r#"{"name":"a/b","config":{}}"#, "must not have a '/'"),
        (r#"{"name":"a","config":{"name":"b"}}"#, "doesn't match"),
        (
            r#"{"name":"a","config":{"bad":"1"}}"#,
            "the following 2 error(s):\nTG-E-CONFIG-INVALID: one thing is wrong",
        ),
    ] {
        let answer = server.send("POST", "/connectors", json_type, body).await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.body);
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(expected), "{body}: {message}");
        assert_eq!(answer.json()["error_code"], 400);
    }
    assert_eq!(server.get("/connectors").await.json(), json!([]));
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    assert_eq!(server.send("POST", "/connectors", form, "{}").await.status, 415);
    assert_eq!(server.send("GET", "/connectors", "Accept: text/html\r\n", "").await.status, 406);
    assert_eq!(server.send("DELETE", "/connectors", "", "").await.status, 405);
    for path in ["/nothing", "/connectors/none", "/connectors/none/tasks/x/status"] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.head.contains("content-type: application/json"), "{}", answer.head);
    }
    std::fs::remove_dir_all(&server.directory).unwrap();
}

#[tokio::test]
async fn a_failed_task_shows_its_trace_and_connectors_survive_the_worker() {
    let server = Server::start("survive").await;
    let body = json!({"name": "f", "config": {"fail": "1"}});
    assert_eq!(server.json("POST", "/connectors", &body).await.status, 201);
    let paused = json!({"name": "p", "config": {"a": "1"}, "initial_state": "PAUSED"});
    assert_eq!(server.json("POST", "/connectors", &paused).await.status, 201);
    let status = server.wait_for_task_state("f", "FAILED").await;
    assert_eq!(status["connector"]["state"], "RUNNING");
    let trace = status["tasks"][0]["trace"].as_str().unwrap();
    assert!(trace.starts_with("TG-E-SLOT-GAP: the slot moved on"), "{trace}");

    let again = Server::start_in(server.stop().await).await;
    assert_eq!(again.get("/connectors").await.json(), json!(["f", "p"]));
    again.wait_for_task_state("p", "PAUSED").await;
    let all = again.get("/connectors?expand=status&expand=info").await.json();
    assert_eq!(all["f"]["info"]["config"], json!({"fail": "1", "name": "f"}));
    assert_eq!(all["p"]["status"]["connector"]["state"], "PAUSED");
    std::fs::remove_dir_all(&again.directory).unwrap();
}

#[tokio::test]
async fn a_configuration_can_be_judged_without_being_submitted() {
    let server = Server::start("validate").await;
    let plugins = server.get("/connector-plugins/").await.json();
    let class = "io.debezium.connector.postgresql.PostgresConnector";
    assert_eq!(plugins, json!([{"class": class, "type": "source", "version": "1.2.3"}]));
    let path = format!("/connector-plugins/{class}/config/validate");
    let answer = server.json("PUT", &path, &json!({"bad": 1})).await;
    assert_eq!(answer.status, 200);
    let body = answer.json();
    assert_eq!((&body["name"], &body["error_count"]), (&json!(class), &json!(2)));
    assert_eq!(body["configs"][0]["value"]["errors"].as_array().unwrap().len(), 2);
    let other = json!({"connector.class": "Other"});
    assert_eq!(server.json("PUT", &path, &other).await.status, 400);
    let unknown = "/connector-plugins/Nothing/config/validate";
    assert_eq!(server.json("PUT", unknown, &json!({})).await.status, 404);
    let keys = server.get("/connector-plugins/Postgres/config").await.json();
    let hostname = keys.as_array().unwrap().iter().find(|key| key["name"] == "database.hostname");
    assert_eq!(hostname.unwrap()["required"], true);
    std::fs::remove_dir_all(&server.directory).unwrap();
}

#[tokio::test]
async fn metrics_are_text_and_follow_the_connectors() {
    let server = Server::start("metrics").await;
    let scrape = async || {
        let answer =
            server.send("GET", "/metrics", "Accept: text/plain;version=0.0.4\r\n", "").await;
        assert_eq!(answer.status, 200);
        assert!(answer.head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"));
        answer.body
    };
    assert!(scrape().await.contains("\nkafka_connect_worker_connector_count 0\n"));
    let body = json!({"name": "say \"a\\b\"", "config": {"fail": "x"}});
    assert_eq!(server.json("POST", "/connectors", &body).await.status, 201);
    let line = r#"kafka_connect_connector_task_status{connector="say \"a\\b\"",task="0",status="failed"} 1"#;
    while !scrape().await.contains(line) {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.send("DELETE", "/connectors/say%20%22a%5Cb%22", "", "").await.status, 204);
    assert!(!scrape().await.contains("say"));
    assert_eq!(server.send("POST", "/metrics", "", "").await.status, 405);
    std::fs::remove_dir_all(&server.directory).unwrap();
}

#[tokio::test]
async fn levels_of_the_log_are_shown_and_changed() {
    let server = Server::start("loggers").await;
    let root = json!({"level": "INFO", "last_modified": null});
    assert_eq!(server.get("/admin/loggers").await.json(), json!({"root": root}));
    assert_eq!(server.get("/admin/loggers/root").await.json(), root);
    assert_eq!(server.get("/admin/loggers/tidegate.kafka").await.json(), root);
    let answer = server.get("/admin/loggers/none").await;
    assert_eq!((answer.status, &answer.json()["message"]), (404, &json!("Logger none not found.")));

    let path = "/admin/loggers/tidegate.kafka";
    let answer = server.json("PUT", path, &json!({"level": "debug"})).await;
    assert_eq!((answer.status, answer.json()), (200, json!(["tidegate.kafka"])));
    let below = server.get("/admin/loggers/tidegate.kafka.publisher").await.json();
    assert_eq!(below["level"], "DEBUG");
    assert!(below["last_modified"].is_i64());
    assert_eq!(server.get("/admin/loggers").await.json().as_object().unwrap().len(), 2);

    for (body, status) in
        [(json!({}), 400), (json!({"level": null}), 400), (json!({"level": "x"}), 404)]
    {
        assert_eq!(server.json("PUT", path, &body).await.status, status, "{body}");
    }
    let body = json!({"level": "WARN"});
    let cluster = server.json("PUT", &format!("{path}?scope=cluster"), &body).await;
    assert_eq!((cluster.status, cluster.body.as_str()), (204, ""));
    let other = server.json("PUT", &format!("{path}?scope=galaxy"), &body).await;
    assert_eq!(other.status, 200, "an unknown scope is the worker's");
    std::fs::remove_dir_all(&server.directory).unwrap();
}

#[tokio::test]
async fn topics_are_told_and_forgotten_where_that_is_allowed() {
    let server = Server::start("topics").await;
    let body = server.json("POST", "/connectors", &create("t")).await;
    assert_eq!(body.status, 201);
    for name in ["t", "unknown"] {
        let path = format!("/connectors/{name}/topics");
        let answer = server.get(&path).await;
        assert_eq!((answer.status, answer.json()), (200, json!({name: {"topics": []}})));
        let answer = server.send("PUT", &format!("{path}/reset"), "", "").await;
        assert_eq!((answer.status, answer.body.as_str()), (202, ""));
    }
    let fixed = TopicTracking { enabled: true, allows_reset: false };
    let server = Server::start_with(server.stop().await, fixed).await;
    assert_eq!(server.get("/connectors/t/topics").await.status, 200);
    assert_eq!(server.send("PUT", "/connectors/t/topics/reset", "", "").await.status, 403);
    let off = TopicTracking { enabled: false, allows_reset: true };
    let server = Server::start_with(server.stop().await, off).await;
    assert_eq!(server.get("/connectors/t/topics").await.json()["error_code"], 403);
    assert_eq!(server.send("PUT", "/connectors/t/topics/reset", "", "").await.status, 403);
    std::fs::remove_dir_all(&server.directory).unwrap();
}

#[tokio::test]
async fn methods_of_a_resource_are_told() {
    let server = Server::start("methods").await;
    let allow = |answer: &Answer| {
        let line = answer.head.lines().find_map(|line| line.strip_prefix("allow: "));
        let mut methods: Vec<_> = line.unwrap_or_default().split(',').map(str::to_owned).collect();
        methods.sort();
        methods.join(",")
    };
    for (path, methods) in [
        ("/", "get,head,options"),
        ("/connectors", "get,head,options,post"),
        ("/connectors/", "get,head,options,post"),
        ("/connectors/x", "delete,get,head,options"),
        ("/connectors/x/config", "get,head,options,patch,put"),
        ("/connectors/x/offsets", "delete,get,head,options,patch"),
        ("/connectors/x/restart", "options,post"),
        ("/connectors/x/row-filters", "options,put"),
        ("/connectors/x/topics/reset", "options,put"),
        ("/admin/loggers/x", "get,head,options,put"),
    ] {
        let answer = server.send("OPTIONS", path, "", "").await;
        assert_eq!((answer.status, allow(&answer).as_str()), (200, methods), "{path}");
        assert!(answer.head.contains("content-type: text/plain"), "{}", answer.head);
        let answer = server.send("TRACE", path, "", "").await;
        assert_eq!((answer.status, allow(&answer).as_str()), (405, methods), "{path}");
        assert_eq!(answer.json()["error_code"], 405);
    }
    assert_eq!(server.send("OPTIONS", "/nothing", "", "").await.status, 404);
    let head = server.send("HEAD", "/connectors", "", "").await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert!(head.head.contains("content-type: application/json"), "{}", head.head);
    assert_eq!(server.send("HEAD", "/connectors/none", "", "").await.status, 404);
    std::fs::remove_dir_all(&server.directory).unwrap();
}

#[tokio::test]
async fn a_body_that_is_too_large_is_answered_not_cut_off() {
    let server = Server::start("large").await;
    let json_type = "Content-Type: application/json\r\n";
    let name = "x".repeat(1 << 20);
    let large = format!(r#"{{"name":"a","config":{{"k":"{name}{name}{name}{name}"}}}}"#);
    for (method, path) in [("POST", "/connectors"), ("PUT", "/connectors/a/config")] {
        let answer = server.send(method, path, json_type, &large).await;
        assert_eq!((answer.status, &answer.json()["error_code"]), (413, &json!(413)), "{path}");
        assert!(answer.head.contains("content-type: application/json"), "{}", answer.head);
    }
    let fits = format!(r#"{{"name":"a","config":{{"k":"{name}"}}}}"#);
    assert_eq!(server.send("POST", "/connectors", json_type, &fits).await.status, 201);
    std::fs::remove_dir_all(&server.directory).unwrap();
}

#[tokio::test]
async fn an_offset_can_be_forgotten_or_taken_over_and_not_invented() {
    let server = Server::start("offsets").await;
    assert_eq!(server.json("POST", "/connectors", &create("o")).await.status, 201);
    let path = "/connectors/o/offsets";
    let forget = json!({"offsets": [{"partition": {"server": "p"}, "offset": null}]});
    assert_eq!(server.json("PATCH", path, &forget).await.status, 400, "it is not stopped");
    assert_eq!(server.send("PUT", "/connectors/o/stop", "", "").await.status, 204);
    let answer = server.json("PATCH", path, &forget).await;
    assert_eq!((answer.status, answer.json()["message"].is_string()), (200, true));
    let theirs = json!({"partition": {"server": "p"}, "offset": {"lsn_proc": 1}});
    let taken = server.json("PATCH", path, &json!({"offsets": [theirs]})).await;
    assert_eq!((taken.status, taken.json()["message"].is_string()), (200, true));
    for body in [
        json!({}),
        json!({"offsets": []}),
        json!({"offsets": [{"partition": {"server": "p"}, "offset": {"lsn": 1}}]}),
        json!({"offsets": [{"partition": {"server": "p"}}]}),
        json!({"offsets": [{"partition": "p", "offset": {"lsn_proc": 1}}]}),
        json!({"offsets": [theirs, theirs]}),
    ] {
        assert_eq!(server.json("PATCH", path, &body).await.status, 400, "{body}");
    }
    assert_eq!(server.json("PATCH", "/connectors/none/offsets", &forget).await.status, 404);
    std::fs::remove_dir_all(&server.directory).unwrap();
}

#[tokio::test]
async fn clients_leniencies_are_taken() {
    let server = Server::start("lenient").await;
    let typed = "Content-Type: application/json; charset=utf-8\r\n";
    let body = create("l").to_string();
    assert_eq!(server.send("POST", "/connectors/", typed, &body).await.status, 201);
    server.wait_for_task_state("l", "RUNNING").await;
    // an empty body with and without a type
    for headers in ["", typed] {
        assert_eq!(server.send("PUT", "/connectors/l/pause", headers, "").await.status, 202);
        assert_eq!(server.send("PUT", "/connectors/l/resume/", headers, "").await.status, 202);
        assert_eq!(server.send("POST", "/connectors/l/restart", headers, "").await.status, 204);
    }
    assert_eq!(server.send("GET", "/connectors/l/", typed, "").await.status, 200);
    for flags in ["includeTasks=banana", "includeTasks=False&onlyFailed=False", ""] {
        let path = format!("/connectors/l/restart?{flags}");
        assert_eq!(server.send("POST", &path, "", "").await.status, 204, "{flags}");
    }
    let expanded = server.get("/connectors?expand=foo").await.json();
    assert_eq!(expanded, json!({"l": {}}));
    for kind in ["text/json", "application/json-patch+json", "application/x-www-form-urlencoded"] {
        let headers = format!("Content-Type: {kind}\r\n");
        let answer = server.send("PATCH", "/connectors/l/config", &headers, "{}").await;
        assert_eq!(answer.status, 415, "{kind}");
    }
    assert_eq!(server.json("PATCH", "/connectors/none/config", &json!({})).await.status, 404);
    let all = server.get("/connector-plugins?connectorsOnly=false").await.json();
    let kinds: std::collections::BTreeSet<_> =
        all.as_array().unwrap().iter().filter_map(|one| one["type"].as_str()).collect();
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        ["converter", "header_converter", "predicate", "source", "transformation"]
    );
    std::fs::remove_dir_all(&server.directory).unwrap();
}
