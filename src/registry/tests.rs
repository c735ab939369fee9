//! Against a registry that misbehaves in every way that was seen.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::{Address, Authentication, Lookup, Registry, Settings};
use crate::config::Secret;
use crate::error::{Code, Fate, Fault};

const SCHEMA: &str = r#"{"type":"record","name":"R","fields":[]}"#;

/// How the fake answers one request.
enum Answer {
    /// Status and body.
    Body(u16, String),
    /// Headers that promise more than comes.
    Torn,
    /// The connection is closed without an answer.
    Close,
    /// No answer until the client gives up.
    Hang,
    /// The answer waits for a sign.
    After(oneshot::Receiver<()>, u32),
}

fn id(id: u32) -> Answer {
    Answer::Body(200, format!(r#"{{"id":{id}}}"#))
}

fn error(status: u16, code: u32, message: &str) -> Answer {
    Answer::Body(status, format!(r#"{{"error_code":{code},"message":"{message}"}}"#))
}

/// A server with a script; after its end it answers with status 418.
#[derive(Clone)]
struct Fake {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    async fn start(script: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let fake = Self { address, requests: Arc::clone(&requests) };
        let script = Arc::new(Mutex::new(VecDeque::from(script)));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&requests)));
            }
        });
        fake
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    fn registry(&self) -> Registry {
        registry(&[&format!("http://{}", self.address)])
    }
}

async fn serve(
    mut stream: TcpStream,
    script: Arc<Mutex<VecDeque<Answer>>>,
    requests: Arc<Mutex<Vec<String>>>,
) {
    let Some(request) = read(&mut stream).await else { return };
    requests.lock().unwrap().push(request);
    let answer = script.lock().unwrap().pop_front();
    let answer = answer.unwrap_or_else(|| Answer::Body(418, "the script is at its end".to_owned()));
    let (status, body, length) = match answer {
        Answer::Body(status, body) => (status, body.clone(), body.len()),
        Answer::Torn => (200, r#"{"id":"#.to_owned(), 100),
        Answer::Close => return,
        Answer::Hang => {
            // Ends when the client closes its side.
            let _closed = stream.read(&mut [0; 1]).await;
            return;
        }
        Answer::After(sign, number) => {
            sign.await.unwrap();
            let body = format!(r#"{{"id":{number}}}"#);
            (200, body.clone(), body.len())
        }
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    // The client may be gone already.
    let _written = stream.write_all(format!("{head}{body}").as_bytes()).await;
}

/// Reads one request: head and body.
async fn read(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_lowercase();
            let length = length
                .split("content-length: ")
                .nth(1)
                .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
            if body.len() >= length {
                return Some(text);
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

fn settings(addresses: &[&str]) -> Settings {
    let addresses = addresses.iter().map(|address| Address::parse(address).unwrap()).collect();
    Settings {
        request_timeout: Duration::from_secs(20),
        retry_for: Some(Duration::from_secs(20)),
        first_delay: Duration::from_millis(1),
        longest_delay: Duration::from_millis(4),
        ..Settings::new(addresses, Authentication::Address)
    }
}

fn registry(addresses: &[&str]) -> Registry {
    Registry::new(settings(addresses)).unwrap()
}

async fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[tokio::test]
async fn a_schema_is_registered_once_and_its_id_remembered() {
    let fake = Fake::start(vec![id(7), id(8), id(9)]).await;
    let registry = fake.registry();
    assert_eq!(registry.id("srv.t-value", SCHEMA).await, Ok(7));
    assert_eq!(registry.clone().id("srv.t-value", SCHEMA).await, Ok(7));
    assert_eq!(registry.id("srv.t-key", SCHEMA).await, Ok(8));
    assert_eq!(registry.id("srv.t-value", "\"string\"").await, Ok(9));
    let requests = fake.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[0].starts_with("POST /subjects/srv.t-value/versions HTTP/1.1"));
    let body: serde_json::Value =
        serde_json::from_str(requests[0].split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["schema"], SCHEMA);
}

#[tokio::test]
async fn concurrent_callers_share_one_request() {
    let (sign, signed) = oneshot::channel();
    let fake = Fake::start(vec![Answer::After(signed, 7)]).await;
    let registry = fake.registry();
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let registry = registry.clone();
            tokio::spawn(async move { registry.id("s", SCHEMA).await })
        })
        .collect();
    sign.send(()).unwrap();
    for caller in callers {
        assert_eq!(caller.await.unwrap(), Ok(7));
    }
    assert_eq!(fake.requests().len(), 1);
}

#[tokio::test]
async fn whatever_may_heal_is_asked_again() {
    let fake = Fake::start(vec![
        error(500, 50_001, "Error in the backend data store"),
        error(429, 42_900, "slow down"),
        error(503, 50_300, "starting"),
        Answer::Body(502, "<html>bad gateway</html>".to_owned()),
        Answer::Body(404, "<html>no backend</html>".to_owned()),
        error(404, 404, "HTTP 404 Not Found"),
        Answer::Body(200, "<html>hello</html>".to_owned()),
        Answer::Body(200, r#"{"version":1}"#.to_owned()),
        Answer::Torn,
        Answer::Close,
        Answer::Hang,
        id(7),
    ])
    .await;
    // Long enough for an answer on a busy machine, for the one that never comes is waited for.
    let registry = Registry::new(Settings {
        request_timeout: Duration::from_secs(1),
        ..settings(&[&format!("http://{}", fake.address)])
    });
    let registry = registry.unwrap();
    let mut waiting = registry.waiting();
    let asked = tokio::spawn({
        let registry = registry.clone();
        async move { registry.id("srv.t-value", SCHEMA).await }
    });
    let seen = waiting.wait_for(Option::is_some).await.unwrap().clone().unwrap();
    assert_eq!(seen.what, "the schema for subject 'srv.t-value'");
    assert!(!seen.cause.is_empty());
    assert_eq!(asked.await.unwrap(), Ok(7));
    assert_eq!(fake.requests().len(), 12);
    assert_eq!(*registry.waiting().borrow(), None);
}

#[tokio::test]
async fn a_failure_is_not_remembered() {
    let fake = Fake::start(vec![error(409, 409, "incompatible"), id(7)]).await;
    let registry = fake.registry();
    let fault = registry.id("s", SCHEMA).await.unwrap_err();
    assert_eq!(fault.code(), Code::SchemaIncompatible);
    assert_eq!(registry.id("s", SCHEMA).await, Ok(7));
}

async fn refused(answer: Answer) -> Fault {
    let fake = Fake::start(vec![answer]).await;
    let fault = fake.registry().id("srv.public.t-value", SCHEMA).await.unwrap_err();
    assert_eq!(fake.requests().len(), 1, "{fault}");
    assert!(fault.to_string().contains("srv.public.t-value"), "{fault}");
    fault
}

#[tokio::test]
async fn a_refusal_has_its_code_and_the_registrys_reason_at_once() {
    let table = [
        (error(409, 409, "READER_FIELD_MISSING"), Code::SchemaIncompatible, "READER_FIELD_MISSING"),
        (error(409, 409, "x"), Code::SchemaIncompatible, "(HTTP 409, error 409)"),
        (Answer::Body(409, "?".to_owned()), Code::SchemaIncompatible, "(HTTP 409)"),
        (error(422, 42_201, "Invalid schema"), Code::SchemaInvalid, "Invalid schema"),
        (error(422, 42_205, "READONLY"), Code::RegistryRefused, "READONLY"),
        (error(401, 40_101, "Unauthorized"), Code::RegistryRefused, "HTTP 401"),
        (Answer::Body(403, String::new()), Code::RegistryRefused, "HTTP 403"),
        (error(404, 40_401, "Not found."), Code::RegistryRefused, "Not found. Check that"),
        (error(413, 413, "too large"), Code::RegistryRefused, "too large"),
    ];
    for (answer, code, says) in table {
        let fault = refused(answer).await;
        assert_eq!(fault.code(), code, "{fault}");
        assert_eq!(fault.fate(), Fate::Halt);
        assert!(fault.to_string().contains(says), "{fault}");
    }
}

#[tokio::test]
async fn a_long_reason_is_cut() {
    let fault = refused(error(409, 409, &"ü".repeat(100_000))).await;
    assert!(fault.to_string().len() < 10_000);
}

#[tokio::test]
async fn after_its_time_an_unreachable_registry_is_a_fault_that_may_heal() {
    let address = closed_port().await;
    let settings = Settings { retry_for: Some(Duration::from_millis(30)), ..settings(&[&address]) };
    let registry = Registry::new(settings).unwrap();
    let fault = registry.id("s", SCHEMA).await.unwrap_err();
    assert_eq!(fault.code(), Code::RegistryUnreachable);
    assert_eq!(fault.fate(), Fate::Retry);
    assert!(fault.to_string().contains(&address), "{fault}");
    assert!(fault.to_string().contains("onnection refused"), "{fault}");
    assert_eq!(*registry.waiting().borrow(), None);
}

#[tokio::test]
async fn without_time_for_attempts_there_is_one() {
    let fake = Fake::start(vec![error(500, 50_001, "x"), id(1)]).await;
    let address = format!("http://{}", fake.address);
    let settings = Settings { retry_for: Some(Duration::ZERO), ..settings(&[&address]) };
    let fault = Registry::new(settings).unwrap().id("s", SCHEMA).await.unwrap_err();
    assert_eq!(fault.code(), Code::RegistryUnreachable);
    assert!(fault.to_string().contains("HTTP 500, error 50001"), "{fault}");
    assert_eq!(fake.requests().len(), 1);
}

#[tokio::test]
async fn the_next_address_answers_where_one_does_not() {
    let (dead, fake) = (closed_port().await, Fake::start(vec![id(7)]).await);
    let registry = registry(&[&dead, &format!("http://{}", fake.address)]);
    assert_eq!(registry.id("s", SCHEMA).await, Ok(7));
}

#[tokio::test]
async fn a_definite_refusal_is_not_hidden_by_another_address() {
    let fake = Fake::start(vec![error(409, 409, "no")]).await;
    let registry = registry(&[&format!("http://{}", fake.address), &closed_port().await]);
    let fault = registry.id("s", SCHEMA).await.unwrap_err();
    assert_eq!(fault.code(), Code::SchemaIncompatible);
}

/// The `Authorization` header that arrives, and the fault's text when it is refused.
async fn authorization(prefix: &str, authentication: Authentication) -> (Option<String>, String) {
    let fake = Fake::start(vec![error(401, 40_101, "who are you")]).await;
    let address = format!("http://{prefix}{}", fake.address);
    let registry = Registry::new(Settings { authentication, ..settings(&[&address]) }).unwrap();
    let fault = registry.id("s", SCHEMA).await.unwrap_err();
    let request = fake.requests().remove(0);
    let headers: Vec<_> = request
        .lines()
        .filter_map(|line| line.split_once(": "))
        .filter(|(name, _)| name.eq_ignore_ascii_case("authorization"))
        .map(|(_, value)| value.to_owned())
        .collect();
    assert!(headers.len() <= 1, "{headers:?}");
    (headers.into_iter().next(), format!("{fault} {registry:?}"))
}

#[tokio::test]
async fn credentials_arrive_and_are_never_shown() {
    let basic =
        || Authentication::Basic { user: "ann".to_owned(), password: Secret::new("s3cret") };
    let bearer = Authentication::Bearer(Secret::new("s3cret"));
    // base64 of ann:s3cret and of bob:s3cret/
    for (prefix, authentication, expect) in [
        ("", Authentication::Address, None),
        ("bob:s3cret%2F@", Authentication::Address, Some("Basic Ym9iOnMzY3JldC8=")),
        ("", basic(), Some("Basic YW5uOnMzY3JldA==")),
        ("bob:s3cret@", basic(), Some("Basic YW5uOnMzY3JldA==")),
        ("", bearer, Some("Bearer s3cret")),
    ] {
        let (header, shown) = authorization(prefix, authentication).await;
        assert_eq!(header.as_deref(), expect);
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}

#[tokio::test]
async fn an_unreachable_address_is_shown_without_its_password() {
    let dead = closed_port().await.replace("http://", "http://bob:s3cret@");
    let settings = Settings { retry_for: Some(Duration::ZERO), ..settings(&[&dead]) };
    let fault = Registry::new(settings).unwrap().id("s", SCHEMA).await.unwrap_err();
    assert!(!fault.to_string().contains("s3cret"), "{fault}");
}

#[tokio::test]
async fn a_schema_is_fetched_by_its_id_once() {
    let body = serde_json::json!({ "schema": SCHEMA }).to_string();
    let fake = Fake::start(vec![Answer::Close, Answer::Body(200, body)]).await;
    let registry = fake.registry();
    for _ in 0..2 {
        assert_eq!(&*registry.fetch_schema(7).await.unwrap(), SCHEMA);
    }
    let requests = fake.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].starts_with("GET /schemas/ids/7"), "{}", requests[1]);
}

#[tokio::test]
async fn a_schema_that_is_missing_or_not_avro_is_refused() {
    let json = serde_json::json!({ "schema": "{}", "schemaType": "JSON" }).to_string();
    let fake =
        Fake::start(vec![error(404, 40_403, "Schema not found"), Answer::Body(200, json)]).await;
    let registry = fake.registry();
    for says in ["Schema not found", "not an Avro schema"] {
        let fault = registry.fetch_schema(7).await.unwrap_err();
        assert_eq!(fault.code(), Code::RegistryRefused);
        assert!(fault.to_string().contains(says), "{fault}");
    }
}

#[test]
fn a_registry_without_an_address_is_refused() {
    let fault = Registry::new(Settings::new(Vec::new(), Authentication::Address)).unwrap_err();
    assert_eq!(fault.code(), Code::ConfigInvalid);
}

#[tokio::test]
async fn who_knows_no_address_of_a_registry_is_none_and_is_named() {
    let elsewhere = Fake::start(vec![error(404, 404, "HTTP 404 Not Found")]).await;
    let fault = elsewhere.registry().check().await.unwrap_err();
    assert_eq!(fault.code(), Code::RegistryUnreachable);
    let text = fault.to_string();
    assert!(text.contains(&elsewhere.address.to_string()), "{text}");
    assert!(text.contains("schema.registry.url"), "{text}");
    let empty = Fake::start(vec![error(404, 40_403, "Schema not found")]).await;
    assert_eq!(empty.registry().check().await, Ok(()));
}

fn looking(fake: &Fake, lookup: Lookup) -> Registry {
    let address = format!("http://{}", fake.address);
    Registry::new(Settings { lookup, ..settings(&[&address]) }).unwrap()
}

#[tokio::test]
async fn a_schema_that_others_register_is_looked_up_and_never_posted_as_a_version() {
    let missing = || error(404, 40_403, "Schema not found");
    let fake = Fake::start(vec![error(404, 40_401, "Subject 's' not found."), missing(), id(7)]);
    let fake = fake.await;
    let registry = looking(&fake, Lookup::Exact);
    for number in ["40401", "40403"] {
        let fault = registry.id("s", SCHEMA).await.unwrap_err();
        assert_eq!((fault.code(), fault.fate()), (Code::SchemaNotRegistered, Fate::Halt));
        for part in ["subject 's'", number, SCHEMA, "auto.register.schemas"] {
            assert!(fault.to_string().contains(part), "{part}: {fault}");
        }
    }
    // once it is there it is found, and remembered
    assert_eq!(registry.id("s", SCHEMA).await, Ok(7));
    assert_eq!(registry.id("s", SCHEMA).await, Ok(7));
    let requests = fake.requests();
    assert_eq!(requests.len(), 3);
    for request in &requests {
        assert!(request.starts_with("POST /subjects/s?"), "{request}");
    }
    let body: serde_json::Value =
        serde_json::from_str(requests[0].split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["schema"], SCHEMA);
}

#[tokio::test]
async fn a_look_up_that_is_not_answered_is_repeated() {
    let fake = Fake::start(vec![error(500, 50_001, "x"), Answer::Close, id(7)]).await;
    assert_eq!(looking(&fake, Lookup::Exact).id("s", SCHEMA).await, Ok(7));
    let fake = Fake::start(vec![error(401, 40_101, "who")]).await;
    let fault = looking(&fake, Lookup::Exact).id("s", SCHEMA).await.unwrap_err();
    assert_eq!(fault.code(), Code::RegistryRefused);
}

#[tokio::test]
async fn a_latest_version_stands_for_the_schema_if_bytes_say_the_same_by_both() {
    let latest = |schema: &str| {
        let body = serde_json::json!({
            "subject": "s", "id": 9, "version": 3, "schemaType": "AVRO", "schema": schema
        });
        Answer::Body(200, body.to_string())
    };
    let own = r#"{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}"#;
    let documented =
        r#"{"type":"record","name":"R","doc":"x","fields":[{"name":"a","type":"int"}]}"#;
    let wider = r#"{"type":"record","name":"R","fields":[{"name":"a","type":"long"}]}"#;
    let missing = error(404, 40_401, "Subject 's' not found.");
    let fake = Fake::start(vec![missing, latest(wider), latest(documented)]).await;
    let registry = looking(&fake, Lookup::Latest);
    for says in ["40401", "fields.a.type"] {
        let fault = registry.id("s", own).await.unwrap_err();
        assert_eq!(fault.code(), Code::SchemaNotRegistered);
        assert!(fault.to_string().contains(says), "{fault}");
        assert!(fault.to_string().contains(own), "{fault}");
    }
    assert_eq!(registry.id("s", own).await, Ok(9));
    for request in fake.requests() {
        assert!(request.starts_with("GET /subjects/s/versions/latest"), "{request}");
    }
}
