//! A connection to the server: encrypted, authenticated, its session pinned.
//!
//! ```text
//! socket     TCP or Unix, encrypted by tls, whose certificate facts come from certificate
//!            (tcp: read in large pieces while much arrives, as pace decides)
//! channel    messages
//! auth       who we are, who the server is
//! query      statements and rows             → everything that asks the catalogue
//! copy       COPY … TO STDOUT                → snapshots
//! commands   the replication commands        → slots
//! stream     CopyBoth                        → the driver
//! cancel     ends a command from beside it   → slots
//! ```
//!
//! One implementation serves the replication stream, the control queries and the snapshot reads,
//! so that encryption, authentication and pinning cannot differ between them.
//! **Invariants:** a [`Connection`] that [`open`](Connection::open) returns is pinned; everything
//! above the socket is generic over the byte stream, so that tests drive it from memory.

mod auth;
mod cancel;
mod certificate;
mod channel;
mod commands;
mod copy;
mod pace;
mod query;
mod server_message;
mod socket;
mod stream;
mod tcp;
mod tls;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use postgres_protocol::message::frontend;
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf, WriteHalf};

use self::auth::{Binding, Credentials, Rejection};
use self::channel::{Body, Incoming, MESSAGE_LIMIT, Outgoing, malformed, unexpected};
use self::server_message::{During, ServerMessage};
use self::tls::Encryption;
use super::session::{self, ServerVersion};
use super::{ConnectionSettings, SslMode};
use crate::error::{Code, Fault};

pub use cancel::Canceller;
pub use commands::{CreatedSlot, SystemIdentity, TimelineSwitch};
pub use copy::CopyOut;
pub use query::{Row, identifier, literal};
pub use socket::Socket;
pub use stream::{ReplicationReader, ReplicationStream, ReplicationWriter, StreamOptions};
pub use tcp::Tcp;

/// What a connection is for. It decides the start-up parameters and the pinned settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Replication commands and the stream.
    Replication,
    /// Short statements; the server ends them after `database.query.timeout.ms`.
    Control,
    /// Reads of whole tables, which may take as long as they take.
    Snapshot,
    /// A statement of the operator's, who may rely on the role's own search path.
    Action,
}

/// A connection to the server, ready for the next statement or command.
#[derive(Debug)]
pub struct Connection<S = Socket> {
    incoming: Incoming<ReadHalf<S>>,
    outgoing: Outgoing<WriteHalf<S>>,
    endpoint: Arc<str>,
    /// The backend that the server says serves this connection, and how its command is ended.
    canceller: Canceller,
    version: ServerVersion,
    /// `false` while an answer is still to be read.
    idle: bool,
    query_limit: Option<Duration>,
}

/// What start-up tells about the server.
#[derive(Default)]
struct Greeting {
    pid: i32,
    secret: i32,
    version: ServerVersion,
}

impl Connection {
    /// Connects, authenticates and pins the session.
    ///
    /// # Errors
    /// The server cannot be reached or refuses us, or the session cannot be pinned.
    pub async fn open(settings: &ConnectionSettings, purpose: Purpose) -> Result<Self, Fault> {
        let reach = Self::reach(settings, purpose);
        let mut connection =
            tokio::time::timeout(settings.connect_timeout, reach).await.map_err(|elapsed| {
                Code::SourceUnreachable
                    .fault(format!("no connection to {}", socket::endpoint(settings)))
                    .caused_by(&elapsed)
            })??;
        // No limit is said by zero, to us as to the server.
        connection.query_limit = Some(settings.query_timeout).filter(|limit| !limit.is_zero());
        session::pin(&mut connection, settings, purpose).await?;
        if purpose == Purpose::Snapshot {
            connection.query_limit = None;
        }
        Ok(connection)
    }

    /// Makes the attempts of the encryption mode.
    async fn reach(settings: &ConnectionSettings, purpose: Purpose) -> Result<Self, Fault> {
        let config = match settings.sslmode {
            SslMode::Disable => None,
            _ if socket::is_local(settings) => None,
            _ => Some(tls::client_config(settings).await?),
        };
        let mut earlier: Option<Fault> = None;
        for encryption in tls::attempts(settings.sslmode) {
            let outcome = Self::attempt(settings, purpose, *encryption, config.clone()).await;
            let rejection = match outcome {
                Ok(connection) => return Ok(connection),
                Err(rejection) => rejection,
            };
            let fault = match &earlier {
                Some(first) if first.message() != rejection.fault.message() => {
                    rejection.fault.code().fault(format!(
                        "{}; before, with the other encryption: {}",
                        rejection.fault.message(),
                        first.message()
                    ))
                }
                _ => rejection.fault,
            };
            if !rejection.may_differ {
                return Err(fault);
            }
            earlier = Some(fault);
        }
        Err(earlier.unwrap_or_else(|| Code::Internal.fault("a mode without attempts")))
    }

    async fn attempt(
        settings: &ConnectionSettings,
        purpose: Purpose,
        encryption: Encryption,
        config: Option<Arc<rustls::ClientConfig>>,
    ) -> Result<Self, Rejection> {
        let stream = Socket::connect(settings, encryption, config).await.map_err(|failure| {
            Rejection { fault: failure.fault, may_differ: failure.may_differ }
        })?;
        let binding = stream.binding();
        let parameters = session::startup_parameters(settings, purpose);
        let credentials = Credentials { user: &settings.user, password: &settings.password };
        let endpoint = socket::endpoint(settings);
        Self::start(stream, &endpoint, &parameters, credentials, &binding).await
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Sends the start-up message, authenticates, and waits until the server is ready.
    async fn start(
        stream: S,
        endpoint: &str,
        parameters: &[(&str, String)],
        credentials: Credentials<'_>,
        binding: &Binding,
    ) -> Result<Self, Rejection> {
        let endpoint: Arc<str> = endpoint.into();
        let (reader, writer) = tokio::io::split(stream);
        let mut incoming = Incoming::new(reader, Arc::clone(&endpoint));
        let mut outgoing = Outgoing::new(writer, Arc::clone(&endpoint));
        let pairs = parameters.iter().map(|(name, value)| (*name, value.as_str()));
        frontend::startup_message(pairs, outgoing.buffer()).map_err(|error| {
            Code::ConfigInvalid.fault("a connection setting holds a zero byte").caused_by(&error)
        })?;
        outgoing.flush().await?;
        auth::authenticate(&mut incoming, &mut outgoing, credentials, binding).await?;
        let greeting = greet(&mut incoming).await?;
        incoming.set_limit(MESSAGE_LIMIT);
        let Greeting { pid, secret, version } = greeting;
        let canceller = Canceller::new(pid, secret);
        Ok(Self { incoming, outgoing, endpoint, canceller, version, idle: true, query_limit: None })
    }

    /// The backend that the server says serves this connection.
    pub fn pid(&self) -> i32 {
        self.canceller.pid()
    }

    /// The server's version.
    pub fn version(&self) -> ServerVersion {
        self.version
    }

    /// Address or socket path, for messages.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Says goodbye, so that the server need not find out by itself.
    pub async fn close(mut self) {
        self.outgoing.shutdown().await;
    }
}

/// Reads what the server says between authentication and its first readiness.
async fn greet<R: AsyncRead + Unpin>(incoming: &mut Incoming<R>) -> Result<Greeting, Fault> {
    let mut greeting = Greeting::default();
    loop {
        let frame = incoming.next().await?;
        let mut body = Body(frame.body);
        match frame.tag {
            b'Z' => return Ok(greeting),
            b'K' => {
                greeting.pid = body.i32().ok_or_else(|| malformed(b'K'))?;
                greeting.secret = body.i32().unwrap_or_default();
            }
            b'S' => {
                let (Some(name), Some(value)) = (body.text(), body.text()) else {
                    return Err(malformed(b'S'));
                };
                if name == "server_version" {
                    greeting.version = ServerVersion::parse(&value);
                }
            }
            b'E' => {
                let message = ServerMessage::parse(frame.body).ok_or_else(|| malformed(b'E'))?;
                return Err(message.fault(During::Connect, "starting a session"));
            }
            b'N' | b'A' => query::log_notice(frame.tag, frame.body),
            other => return Err(unexpected(other, "during start-up")),
        }
    }
}
