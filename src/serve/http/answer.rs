//! Answers as JSON, the bad ones too.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::serve::fault::ServeError;
use crate::serve::version::Version;

/// Why a call was not answered, as the body has it.
#[derive(Serialize)]
struct Problem<'a> {
    error: &'a str,
    message: String,
    /// The version that there is, where the caller's is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<Version>,
}

/// The word of the error that a response is, for those who count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault(pub(super) &'static str);

impl IntoResponse for ServeError {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::NoCluster | Self::Stale { .. } | Self::Follows => StatusCode::CONFLICT,
            Self::Input(_) => StatusCode::BAD_REQUEST,
            Self::Refused { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Busy => StatusCode::TOO_MANY_REQUESTS,
            Self::Late => StatusCode::GATEWAY_TIMEOUT,
            Self::Closing => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let version = match &self {
            Self::Stale { current, .. } => Some(*current),
            _ => None,
        };
        let mut response = json(&Problem { error: self.word(), message: self.to_string(), version });
        *response.status_mut() = status;
        response.extensions_mut().insert(Fault(self.word()));
        if matches!(self, Self::Busy) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// Why a call was not answered, by a word and a sentence.
pub(super) fn problem(status: StatusCode, word: &str, message: &str) -> Response {
    let mut response = json(&Problem { error: word, message: message.to_owned(), version: None });
    *response.status_mut() = status;
    response
}

/// A body of JSON.
pub(in crate::serve) fn json<T: Serialize + ?Sized>(value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => json_bytes(bytes),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// A body that is JSON already.
pub(in crate::serve) fn json_bytes(bytes: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], bytes).into_response()
}

/// `{"version":…,"NAME":[…]}` of lines that are JSON, one object each.
pub(super) fn listed(version: Version, name: &str, lines: &[u8], more: &str) -> Response {
    let mut bytes = format!("{{\"version\":\"{version}\"{more},\"{name}\":[").into_bytes();
    bytes.reserve(lines.len() + 2);
    // No line holds a line break: JSON writes those of texts as two characters.
    let end = lines.len() - usize::from(lines.ends_with(b"\n"));
    bytes.extend(lines[..end].iter().map(|&byte| if byte == b'\n' { b',' } else { byte }));
    bytes.extend_from_slice(b"]}");
    json_bytes(bytes)
}
