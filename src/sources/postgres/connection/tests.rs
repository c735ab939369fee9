//! A scripted server at the other end of an in-memory pipe.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

use ring::{digest, hmac, pbkdf2};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::auth::{Binding, Credentials, Rejection};
use super::{Connection, ReplicationStream, StreamOptions};
use crate::config::Secret;
use crate::error::{Code, Fault};
use crate::sources::postgres::session::ServerVersion;
use crate::sources::postgres::wire::{Lsn, StatusUpdate, WireTime};

/// The server's end of the pipe.
struct Server(DuplexStream);

impl Server {
    async fn startup(&mut self) -> HashMap<String, String> {
        let length = self.0.read_u32().await.expect("a length");
        let mut body = vec![0; length as usize - 4];
        self.0.read_exact(&mut body).await.expect("a start-up message");
        let text = String::from_utf8(body.split_off(4)).expect("text");
        let mut words = text.split('\0').filter(|word| !word.is_empty());
        std::iter::from_fn(|| Some((words.next()?.to_owned(), words.next()?.to_owned()))).collect()
    }

    async fn receive(&mut self) -> (u8, Vec<u8>) {
        let tag = self.0.read_u8().await.expect("a tag");
        let length = self.0.read_u32().await.expect("a length");
        let mut body = vec![0; length as usize - 4];
        self.0.read_exact(&mut body).await.expect("a body");
        (tag, body)
    }

    async fn send(&mut self, tag: u8, body: &[u8]) {
        self.0.write_u8(tag).await.expect("room");
        let length = u32::try_from(body.len() + 4).expect("a short body");
        self.0.write_u32(length).await.expect("room");
        self.0.write_all(body).await.expect("room");
    }

    async fn demand(&mut self, code: u32, body: &[u8]) {
        self.send(b'R', &[&code.to_be_bytes()[..], body].concat()).await;
    }

    async fn error(&mut self, severity: &str, state: &str, text: &str) {
        let body = format!("S{severity}\0V{severity}\0C{state}\0M{text}\0\0");
        self.send(b'E', body.as_bytes()).await;
    }

    async fn welcome(&mut self) {
        self.demand(0, b"").await;
        self.send(b'S', b"server_version\x0015.18\0").await;
        self.send(b'S', b"in_hot_standby\0off\0").await;
        self.send(b'K', &[0, 0, 0, 42, 1, 2, 3, 4]).await;
        self.send(b'Z', b"I").await;
    }
}

fn pipe() -> (DuplexStream, Server) {
    let (near, far) = tokio::io::duplex(4096);
    (near, Server(far))
}

async fn start(
    stream: DuplexStream,
    password: &str,
    binding: Binding,
) -> Result<Connection<DuplexStream>, Rejection> {
    let parameters = [("user", "u".to_owned()), ("DateStyle", "ISO, YMD".to_owned())];
    let password = Secret::new(password);
    let credentials = Credentials { user: "u", password: &password };
    Connection::start(stream, "test:1", &parameters, credentials, &binding).await
}

async fn connected() -> (Connection<DuplexStream>, Server) {
    let (near, mut server) = pipe();
    let serve = async {
        server.startup().await;
        server.welcome().await;
    };
    let (connection, ()) = tokio::join!(start(near, "", Binding::Plain), serve);
    (connection.map_err(|rejection| rejection.fault).expect("connected"), server)
}

#[tokio::test]
async fn trusted_session_knows_its_process_and_version() {
    let (near, mut server) = pipe();
    let serve = async {
        let parameters = server.startup().await;
        assert_eq!(parameters["DateStyle"], "ISO, YMD");
        server.welcome().await;
    };
    let (connection, ()) = tokio::join!(start(near, "", Binding::Plain), serve);
    let connection = connection.map_err(|rejection| rejection.fault).expect("connected");
    assert_eq!((connection.pid(), connection.version()), (42, ServerVersion(150_018)));
}

#[tokio::test]
async fn clear_text_and_md5_passwords_are_sent_as_asked() {
    for (code, salt, expect) in [
        (3, &b""[..], &b"pencil\0"[..]),
        // md5(md5("pencil" "u") salt)
        (5, &[1, 2, 3, 4], b"md5"),
    ] {
        let (near, mut server) = pipe();
        let serve = async {
            server.startup().await;
            server.demand(code, salt).await;
            let (tag, body) = server.receive().await;
            assert_eq!(tag, b'p');
            assert!(body.starts_with(expect), "{code}");
            server.welcome().await;
        };
        let (connection, ()) = tokio::join!(start(near, "pencil", Binding::Plain), serve);
        assert!(connection.is_ok());
    }
}

/// The server's side of SCRAM-SHA-256 (RFC 5802), by another implementation than the client's.
struct Scram {
    salt: Vec<u8>,
    stored_key: Vec<u8>,
    server_key: hmac::Key,
}

impl Scram {
    const ITERATIONS: u32 = 4096;

    fn new(password: &str) -> Self {
        let salt = b"a salt of twenty bytes".to_vec();
        let mut salted = [0; digest::SHA256_OUTPUT_LEN];
        let iterations = NonZeroU32::new(Self::ITERATIONS).expect("more than none");
        let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
        pbkdf2::derive(algorithm, iterations, &salt, password.as_bytes(), &mut salted);
        let key = hmac::Key::new(hmac::HMAC_SHA256, &salted);
        let client_key = hmac::sign(&key, b"Client Key");
        let server_key = hmac::sign(&key, b"Server Key");
        Self {
            salt,
            stored_key: digest::digest(&digest::SHA256, client_key.as_ref()).as_ref().to_vec(),
            server_key: hmac::Key::new(hmac::HMAC_SHA256, server_key.as_ref()),
        }
    }

    /// Runs the exchange; `true` if the client knows the password and bound as expected.
    async fn serve(&self, server: &mut Server, offers: &[&str], gs2: &str, bound: &[u8]) -> bool {
        let list: String = offers.iter().map(|offer| format!("{offer}\0")).collect();
        server.demand(10, format!("{list}\0").as_bytes()).await;
        let (_, body) = server.receive().await;
        let text = String::from_utf8_lossy(&body).into_owned();
        let (mechanism, rest) = text.split_once('\0').expect("a mechanism");
        assert!(offers.contains(&mechanism), "{mechanism}");
        let start = rest.find(gs2).unwrap_or_else(|| panic!("{rest:?} without {gs2}"));
        let bare = rest.get(start + gs2.len()..).expect("the bare message").to_owned();
        let client_nonce = bare.split_once("r=").expect("a nonce").1;
        let nonce = format!("{client_nonce}server");
        let salt = base64(&self.salt);
        let first = format!("r={nonce},s={salt},i={}", Self::ITERATIONS);
        server.demand(11, first.as_bytes()).await;
        let (_, body) = server.receive().await;
        let last = String::from_utf8(body).expect("text");
        let (unproved, proof) = last.split_once(",p=").expect("a proof");
        let binding = base64(&[gs2.as_bytes(), bound].concat());
        assert_eq!(unproved, format!("c={binding},r={nonce}"));
        let message = format!("{bare},{first},{unproved}");
        let stored = hmac::Key::new(hmac::HMAC_SHA256, &self.stored_key);
        let signature = hmac::sign(&stored, message.as_bytes());
        let client_key: Vec<u8> =
            unbase64(proof).iter().zip(signature.as_ref()).map(|(a, b)| a ^ b).collect();
        if digest::digest(&digest::SHA256, &client_key).as_ref() != self.stored_key {
            return false;
        }
        let verifier = hmac::sign(&self.server_key, message.as_bytes());
        server.demand(12, format!("v={}", base64(verifier.as_ref())).as_bytes()).await;
        true
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

fn unbase64(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text
        .bytes()
        .filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte))
        .map(|value| u32::try_from(value).expect("under 64"))
        .collect();
    let mut bytes = Vec::new();
    for chunk in digits.chunks(4) {
        let bits = chunk.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - chunk.len()));
        bytes.extend(bits.to_be_bytes().iter().skip(1).take(chunk.len() * 6 / 8));
    }
    bytes
}

struct ScramCase {
    binding: Binding,
    offers: &'static [&'static str],
    gs2: &'static str,
    bound: &'static [u8],
}

const PLAIN: &str = "SCRAM-SHA-256";
const PLUS: &str = "SCRAM-SHA-256-PLUS";

async fn check_scram(case: ScramCase) {
    let (near, mut server) = pipe();
    let scram = Scram::new("pencil");
    let serve = async {
        server.startup().await;
        assert!(scram.serve(&mut server, case.offers, case.gs2, case.bound).await);
        server.welcome().await;
    };
    let (connection, ()) = tokio::join!(start(near, "pencil", case.binding), serve);
    assert!(connection.is_ok(), "{:?}", connection.err());
}

#[tokio::test]
async fn scram_binds_to_the_channel_where_both_sides_can() {
    let hash = b"the hash of a certificate";
    let can = || Binding::Tls(Some(hash.to_vec()));
    let case = |binding, offers, gs2, bound| ScramCase { binding, offers, gs2, bound };
    check_scram(case(Binding::Plain, &[PLAIN], "n,,", b"")).await;
    check_scram(case(can(), &[PLUS, PLAIN], "p=tls-server-end-point,,", hash)).await;
    check_scram(case(can(), &[PLAIN], "y,,", b"")).await;
    check_scram(case(Binding::Tls(None), &[PLUS, PLAIN], "n,,", b"")).await;
}

#[tokio::test]
async fn wrong_password_is_refused_after_a_secret_was_sent() {
    let (near, mut server) = pipe();
    let scram = Scram::new("pencil");
    let serve = async {
        server.startup().await;
        assert!(!scram.serve(&mut server, &[PLAIN], "n,,", b"").await);
        server.error("FATAL", "28P01", "password authentication failed for user \"u\"").await;
    };
    let (connection, ()) = tokio::join!(start(near, "pen", Binding::Plain), serve);
    let rejection = connection.expect_err("refused");
    assert_eq!(rejection.fault.code(), Code::SourceAuthentication);
    assert!(!rejection.may_differ);
    assert!(!rejection.fault.to_string().contains("pen\""), "{}", rejection.fault);
}

#[tokio::test]
async fn server_that_does_not_prove_itself_is_refused() {
    let (near, mut server) = pipe();
    let serve = async {
        server.startup().await;
        server.demand(10, b"SCRAM-SHA-256\0\0").await;
        server.receive().await;
        server.demand(0, b"").await;
    };
    let (connection, ()) = tokio::join!(start(near, "pencil", Binding::Plain), serve);
    let rejection = connection.expect_err("refused");
    assert_eq!(rejection.fault.code(), Code::SourceAuthentication);
}

#[track_caller]
fn expect_code(outcome: Result<Connection<DuplexStream>, Rejection>, code: Code, differ: bool) {
    let rejection = outcome.expect_err("refused");
    assert_eq!((rejection.fault.code(), rejection.may_differ), (code, differ));
}

#[tokio::test]
async fn refusals_before_a_secret_allow_another_encryption() {
    for (state, code) in [
        ("28000", Code::SourceAuthentication),
        ("08P01", Code::PoolerDetected),
        ("53300", Code::SourceUnreachable),
    ] {
        let (near, mut server) = pipe();
        let serve = async {
            server.startup().await;
            server.error("FATAL", state, "no").await;
        };
        let (outcome, ()) = tokio::join!(start(near, "", Binding::Plain), serve);
        expect_code(outcome, code, true);
    }
    let (near, mut server) = pipe();
    let serve = async {
        server.startup().await;
        server.demand(0, b"").await;
        server.error("FATAL", "3D000", "database \"d\" does not exist").await;
    };
    let (outcome, ()) = tokio::join!(start(near, "", Binding::Plain), serve);
    expect_code(outcome, Code::SourceDatabaseMissing, false);
}

#[tokio::test]
async fn demands_that_cannot_be_met_are_refused() {
    for (code, body, expect) in [
        (7, &b""[..], Code::SourceAuthentication),
        (10, b"OAUTHBEARER\0\0", Code::SourceAuthentication),
        (3, b"", Code::SourceAuthentication), // no password is configured
        (11, b"r=x,s=y,i=1", Code::ProtocolUnexpected),
        (99, b"", Code::ProtocolUnexpected),
    ] {
        let (near, mut server) = pipe();
        let serve = async {
            server.startup().await;
            server.demand(code, body).await;
        };
        let (outcome, ()) = tokio::join!(start(near, "", Binding::Plain), serve);
        expect_code(outcome, expect, false);
    }
}

#[tokio::test]
async fn statement_that_fails_leaves_the_connection_in_step() {
    let (mut connection, mut server) = connected().await;
    let serve = async {
        let (tag, body) = server.receive().await;
        assert_eq!((tag, &body[..]), (b'Q', &b"SELECT nothing\0"[..]));
        server.error("ERROR", "42703", "column \"nothing\" does not exist").await;
        server.send(b'Z', b"I").await;
        server.receive().await;
        server.send(b'T', b"\0\0").await;
        server.send(b'D', &[0, 1, 0, 0, 0, 1, b'7']).await;
        server.send(b'C', b"SELECT 1\0").await;
        server.send(b'Z', b"I").await;
    };
    let ask = async {
        let fault = connection.query("asking", "SELECT nothing").await.expect_err("refused");
        assert_eq!(fault.code(), Code::SourceQuery);
        assert!(fault.message().starts_with("asking: column"), "{fault}");
        let row = connection.query_one("asking again", "SELECT 7").await.expect("a row");
        assert_eq!(row.parse_as::<i32>(0).expect("a number"), 7);
    };
    tokio::join!(serve, ask);
}

#[tokio::test]
async fn exchange_that_was_given_up_spoils_the_connection() {
    let (mut connection, _server) = connected().await;
    let given_up =
        tokio::time::timeout(Duration::from_millis(1), connection.query("one", "SELECT 1")).await;
    assert!(given_up.is_err());
    let fault = connection.query("two", "SELECT 2").await.expect_err("out of step");
    assert_eq!(fault.code(), Code::SourceUnreachable);
}

#[tokio::test]
async fn identify_system_through_a_pooler_is_told_as_such() {
    let (mut connection, mut server) = connected().await;
    let serve = async {
        server.receive().await;
        server.error("ERROR", "42601", "syntax error at or near \"IDENTIFY_SYSTEM\"").await;
        server.send(b'Z', b"I").await;
    };
    let (outcome, ()) = tokio::join!(connection.identify_system(), serve);
    assert_eq!(outcome.expect_err("no walsender").code(), Code::PoolerDetected);
}

const OPTIONS: StreamOptions<'static> = StreamOptions { publication: "p", messages: true };

async fn streaming() -> (ReplicationStream<DuplexStream>, Server) {
    let (connection, mut server) = connected().await;
    let serve = async {
        server.receive().await;
        server.send(b'W', &[0, 0, 0]).await;
    };
    let (stream, ()) = tokio::join!(connection.start_replication("s", Lsn(1), &OPTIONS), serve);
    (stream.expect("started"), server)
}

#[tokio::test]
async fn busy_slot_is_told_and_the_connection_stays_usable() {
    let (mut connection, mut server) = connected().await;
    let serve = async {
        server.receive().await;
        server.error("ERROR", "55006", "replication slot \"s\" is active for PID 7").await;
        server.send(b'Z', b"I").await;
        server.receive().await;
        server.send(b'W', &[0, 0, 0]).await;
    };
    let ask = async {
        let fault = connection.enter_stream("s", Lsn(1), &OPTIONS).await.expect_err("busy");
        assert_eq!(fault.code(), Code::SlotActive);
        connection.enter_stream("s", Lsn(1), &OPTIONS).await.expect("free now");
    };
    tokio::join!(serve, ask);
}

#[tokio::test]
async fn payloads_pass_and_status_goes_while_nobody_reads() {
    let (stream, mut server) = streaming().await;
    server.send(b'd', b"kfirst").await;
    server.send(b'N', b"SNOTICE\0C00000\0Mharmless\0\0").await;
    server.send(b'd', b"wsecond").await;
    let (mut reader, mut writer) = stream.into_split();
    assert_eq!(reader.next().await.expect("well"), Some(&b"kfirst"[..]));
    assert_eq!(reader.next().await.expect("well"), Some(&b"wsecond"[..]));
    assert_eq!(reader.try_next().expect("well"), None);
    let update = StatusUpdate {
        written: Lsn(3),
        flushed: Lsn(2),
        applied: Lsn(2),
        clock: WireTime(0),
        reply_requested: false,
    };
    writer.send_status(&update).await.expect("sent");
    let (tag, body) = server.receive().await;
    assert_eq!((tag, body.len()), (b'd', StatusUpdate::LENGTH));
    let mut expect = Vec::new();
    update.encode(&mut expect);
    assert_eq!(body, expect);
}

#[tokio::test]
async fn orderly_stop_outlasts_the_rest_of_a_transaction() {
    let (stream, mut server) = streaming().await;
    let (mut reader, mut writer) = stream.into_split();
    let serve = async {
        assert_eq!(server.receive().await.0, b'c');
        server.send(b'c', b"").await;
        server.send(b'd', b"wthe rest").await;
        server.send(b'C', b"COPY 0\0").await;
        server.send(b'C', b"START_REPLICATION\0").await;
        server.send(b'Z', b"I").await;
        assert_eq!(server.receive().await.0, b'X');
    };
    let leave = async {
        writer.finish().await.expect("told");
        while reader.next().await.expect("an end").is_some() {}
        writer.close().await;
    };
    tokio::join!(leave, serve);
}

async fn check_end(serve: impl AsyncFnOnce(&mut Server), expect: Code) -> Fault {
    let (mut stream, mut server) = streaming().await;
    serve(&mut server).await;
    drop(server);
    let fault = stream.next().await.expect_err("the end");
    assert_eq!(fault.code(), expect, "{fault}");
    fault
}

#[tokio::test]
async fn every_unasked_end_of_the_stream_is_a_fault() {
    check_end(async |_: &mut Server| {}, Code::SourceUnreachable).await;
    check_end(async |server| server.send(b'C', b"COPY 0\0").await, Code::StreamStopped).await;
    check_end(async |server| server.send(b'T', b"").await, Code::ProtocolUnexpected).await;
    check_end(
        async |server| server.error("FATAL", "57P01", "terminating connection").await,
        Code::StreamStopped,
    )
    .await;
    check_end(
        async |server| server.error("ERROR", "42704", "publication \"p\" does not exist").await,
        Code::PublicationMissing,
    )
    .await;
}

#[tokio::test]
async fn warning_that_a_publication_is_skipped_ends_the_stream() {
    let warn = async |server: &mut Server| {
        let body = b"SWARNING\0VWARNING\0C55000\0Mskipped loading publication \"p\"\0\0";
        server.send(b'N', body).await;
    };
    let fault = check_end(warn, Code::PublicationMissing).await;
    assert!(fault.message().contains("skipped loading publication"), "{fault}");
}

#[tokio::test]
async fn copy_hands_out_rows_until_the_server_is_ready() {
    let (mut connection, mut server) = connected().await;
    let serve = async {
        server.receive().await;
        server.send(b'H', &[0, 0, 1, 0, 0]).await;
        server.send(b'd', b"1\n").await;
        server.send(b'd', b"2\n").await;
        server.send(b'c', b"").await;
        server.send(b'C', b"COPY 2\0").await;
        server.send(b'Z', b"T").await;
        server.receive().await;
        server.error("ERROR", "42501", "permission denied for table t").await;
        server.send(b'Z', b"E").await;
    };
    let ask = async {
        let mut copy = connection.copy_out("reading t", "COPY t TO STDOUT").await.expect("begun");
        assert_eq!(copy.next().await.expect("a row"), Some(&b"1\n"[..]));
        assert_eq!(copy.next().await.expect("a row"), Some(&b"2\n"[..]));
        assert_eq!(copy.next().await.expect("the end"), None);
        assert_eq!(copy.next().await.expect("still the end"), None);
        let fault = connection.copy_out("reading t", "COPY t TO STDOUT").await.expect_err("no");
        assert_eq!(fault.code(), Code::ReplicationPermission);
        assert!(connection.idle);
    };
    tokio::join!(serve, ask);
}
