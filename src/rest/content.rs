//! Request bodies of bounded size.
//!
//! **Invariant:** whoever sends too much is told so in an error body: what is too much is read and
//! thrown away, within limits, for a client that still sends does not read the answer.

use std::pin::Pin;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};

use super::ApiError;

/// No configuration is larger.
const LIMIT: usize = 2 << 20;
/// More than this is not even thrown away: the connection is closed under the client.
const PATIENCE: usize = 64 << 20;

/// A whole request body.
#[derive(Debug)]
pub(super) struct Content(pub(super) Bytes);

impl<S: Send + Sync> FromRequest<S> for Content {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        // a client that asks before it sends is answered at once
        let asks = request
            .headers()
            .get(header::EXPECT)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        let declared = request
            .headers()
            .get(header::CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        if asks && declared.is_some_and(|declared| declared > LIMIT) {
            return Err(too_large());
        }
        read(request.into_body()).await.map(Self)
    }
}

async fn read(mut body: Body) -> Result<Bytes, ApiError> {
    let mut content = Vec::new();
    let mut length: usize = 0;
    while let Some(frame) =
        std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
    {
        let frame = frame.map_err(|error| {
            ApiError::bad_request(format!("The request's body broke off: {error}"))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        length = length.saturating_add(data.len());
        if length > PATIENCE {
            break;
        }
        if length <= LIMIT {
            content.extend_from_slice(&data);
        }
    }
    if length > LIMIT { Err(too_large()) } else { Ok(Bytes::from(content)) }
}

fn too_large() -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("HTTP 413 Payload Too Large: a request's body has at most {LIMIT} bytes"),
    )
}
