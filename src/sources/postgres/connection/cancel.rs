//! Ends what a session is waiting for, from beside it.
//!
//! A command that the server is busy with is not ended by closing its connection: it looks at that
//! only when it has something to say. The request goes over a connection of its own, encrypted by the
//! same rule (protocol documentation, "Canceling Requests in Progress"). Knows no commands.
//! **Invariant:** the secret by which the server knows the session is never shown.

use std::fmt;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tokio::io::AsyncWriteExt;

use super::Connection;
use super::socket::{self, Socket};
use super::tls;
use crate::error::{Code, Fault};
use crate::sources::postgres::{ConnectionSettings, SslMode};

/// Ends what one session is waiting for.
#[derive(Clone, Copy)]
pub struct Canceller {
    pid: i32,
    secret: i32,
}

impl fmt::Debug for Canceller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Canceller").field("pid", &self.pid).finish_non_exhaustive()
    }
}

impl<S> Connection<S> {
    /// What ends this session's commands while they are waited for.
    pub const fn canceller(&self) -> Canceller {
        self.canceller
    }
}

impl Canceller {
    /// For a session that the server has told of so.
    pub(super) const fn new(pid: i32, secret: i32) -> Self {
        Self { pid, secret }
    }

    /// The backend.
    pub(super) const fn pid(self) -> i32 {
        self.pid
    }

    /// Asks the server to end the session's command, which then says so itself.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn cancel(self, settings: &ConnectionSettings) -> Result<(), Fault> {
        let ask = self.ask(settings);
        tokio::time::timeout(settings.connect_timeout, ask).await.map_err(|elapsed| {
            Code::SourceUnreachable
                .fault(format!("no connection to {}", socket::endpoint(settings)))
                .caused_by(&elapsed)
        })?
    }

    async fn ask(self, settings: &ConnectionSettings) -> Result<(), Fault> {
        let config = match settings.sslmode {
            SslMode::Disable => None,
            _ if socket::is_local(settings) => None,
            _ => Some(tls::client_config(settings).await?),
        };
        let mut request = BytesMut::new();
        frontend::cancel_request(self.pid, self.secret, &mut request);
        let mut outcome = Ok(());
        for encryption in tls::attempts(settings.sslmode) {
            match Socket::connect(settings, *encryption, config.clone()).await {
                Ok(mut stream) => {
                    let sent = async {
                        stream.write_all(&request).await?;
                        stream.shutdown().await
                    };
                    return sent.await.map_err(|error| {
                        Code::SourceUnreachable
                            .fault("a command cannot be cancelled")
                            .caused_by(&error)
                    });
                }
                Err(failure) if failure.may_differ => outcome = Err(failure.fault),
                Err(failure) => return Err(failure.fault),
            }
        }
        outcome
    }
}
