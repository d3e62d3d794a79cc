//! The batch API for programs, over gRPC, on the same port as HTTP: `slotwise.proto` says what travels.
//!
//! | file | what |
//! | --- | --- |
//! | `generated.rs` | what tonic makes of `slotwise.proto`; a test makes it again and compares |
//! | `guard.rs`, `status.rs` | who is let in; errors as codes |
//! | `columns.rs`, `jobs.rs` | columns checked, and jobs, seats and moves from them |
//! | `put.rs`, `edits.rs`, `score.rs`, `place.rs` | the calls' own messages, to what `Live` takes and back |
//! | `calls.rs` | the calls |

mod calls;
mod columns;
mod edits;
mod guard;
mod jobs;
mod place;
mod put;
mod score;
mod status;

#[allow(
    missing_docs,
    unreachable_pub,
    clippy::allow_attributes_without_reason,
    clippy::doc_markdown,
    reason = "it is made by tonic; slotwise.proto has the comments"
)]
#[rustfmt::skip]
pub mod generated;

use std::sync::Arc;

use axum::Router;
use tower::ServiceExt;

pub use edits::edits;
pub(super) use jobs::NOT_SAID;
pub use place::queue;
pub use put::Pieces;
pub use score::candidates;
pub use status::{ERROR_KEY, VERSION_KEY};

use super::http::App;
use calls::Calls;
use generated::slotwise_server::SlotwiseServer;

/// The routes of all calls.
pub(super) fn routes(app: &Arc<App>) -> Router<Arc<App>> {
    let limit = app.limits.body;
    let calls = SlotwiseServer::new(Calls(Arc::clone(app))).max_decoding_message_size(limit);
    // A snapshot that somebody put may come back as longer text.
    let calls = calls.max_encoding_message_size(usize::MAX);
    let path = format!("/{}/{{*call}}", generated::slotwise_server::SERVICE_NAME);
    Router::new()
        .route_service(&path, calls.map_request(|request: axum::extract::Request| request.map(tonic::body::Body::new)))
        .route_layer(axum::middleware::from_fn_with_state(Arc::clone(app), guard::admit))
}
