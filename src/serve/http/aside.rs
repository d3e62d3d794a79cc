//! Plans, explanations and audits: the documents of the commands of those names, with the version that they are about.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::Response;

use super::App;
use super::answer::json_bytes;
use crate::serve::aside::{AuditQuestion, ExplainQuestion, PlanQuestion, Question};
use crate::serve::fault::ServeError;

type Answer = Result<Response, ServeError>;

/// `POST /v1/plan`.
pub(super) async fn plan(Shared(app): Shared<Arc<App>>, headers: HeaderMap, body: Bytes) -> Answer {
    answer(&app, &headers, PlanQuestion::read(&body)?).await
}

/// `POST /v1/explain`.
pub(super) async fn explain(Shared(app): Shared<Arc<App>>, headers: HeaderMap, body: Bytes) -> Answer {
    answer(&app, &headers, ExplainQuestion::read(&body)?).await
}

/// `GET /v1/audit`, and `POST` with those who wait.
pub(super) async fn audit(Shared(app): Shared<Arc<App>>, headers: HeaderMap, body: Bytes) -> Answer {
    answer(&app, &headers, AuditQuestion::read(&body)?).await
}

async fn answer(app: &App, headers: &HeaderMap, question: impl Question) -> Answer {
    Ok(json_bytes(app.answer(app.deadline(headers)?, question).await?))
}
