//! The service: a standing process that keeps the cluster, on the device, and answers schedulers.
//!
//! ```text
//!  http/, grpc/, extender/, watch/          many threads: decode, wait, encode
//!        │ Engine::run, Engine::score       a bounded queue, with deadlines
//!        ▼
//!  engine.rs ─► live.rs                     one thread: the cluster, its version, the device
//! ```
//!
//! Those who watch, by the page or by Prometheus, are told of `metrics.rs`, `history.rs` and `live/picture.rs`.
//!
//! What is here is a cache. Its clients know the truth and can put it again at any time; every answer says which version
//! it is about, and a call for another version is refused.

pub mod aside;
pub mod client;
mod connections;
pub mod engine;
pub mod extender;
pub mod fault;
pub mod files;
pub mod grpc;
pub mod history;
pub mod http;
pub mod live;
pub mod metrics;
pub mod options;
pub mod server;
mod tls;
pub mod version;
pub mod watch;

pub use client::{Client, ClientError, ClientOptions};
pub use engine::Engine;
pub use extender::ExtenderOptions;
pub use fault::ServeError;
pub use files::ServeFile;
pub use history::{Decided, History};
pub use live::{Changed, Condition, Live, PlaceCall, ScoreCall, Scored, resolve_candidates};
pub use metrics::Metrics;
pub use options::{BadToken, Limits, ServeOptions, Tls, Token};
pub use server::{StartError, run};
pub use version::{Epoch, NoVersion, Version};
pub use watch::WatchOptions;
