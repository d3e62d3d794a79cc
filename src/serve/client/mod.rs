//! A client of the service, for schedulers that are written in Rust.
//!
//! The service is a cache of what the scheduler knows. A scheduler puts its cluster once, then says what happens, and asks.
//! Where the service answers that it has no cluster, because it was started anew, the scheduler puts it again; where it
//! answers that the version is another, the scheduler learns which and decides for itself whether to ask again.
//!
//! ```no_run
//! use slotwise::cluster::JobSpec;
//! use slotwise::decide::PlaceOptions;
//! use slotwise::formats::{EditSpec, read_cluster};
//! use slotwise::serve::client::Submissions;
//! use slotwise::serve::{Client, ClientError, ClientOptions, Condition};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let cluster = read_cluster("cluster.json")?.cluster;
//! let mut client = Client::connect(&ClientOptions::new("http://127.0.0.1:8888")).await?;
//! let mut version = client.put(&cluster).await?;
//!
//! // A job has ended. The name makes it safe to tell twice.
//! let ended = [EditSpec::End("train-17".to_owned())];
//! let condition = Condition { version: Some(version), id: Some("event-4711".to_owned()) };
//! version = match client.edit(&condition, &ended).await {
//!     Ok(changed) => changed.version,
//!     Err(ClientError::Stale { current }) => current,
//!     Err(ClientError::NoCluster) => client.put(&cluster).await?,
//!     Err(error) => return Err(error.into()),
//! };
//!
//! // Where would a gang of four whole nodes go?
//! let job = JobSpec { name: "train-18", gpus: 8, ..JobSpec::default() };
//! let condition = Condition { version: Some(version), id: None };
//! let queue = Submissions::new().submit(&job, 4);
//! let placed = client.place(&condition, queue, &PlaceOptions::default(), false).await?;
//! println!("{:?} on the nodes {:?}", placed.status, placed.place.unwrap_or_default().node);
//! # Ok(())
//! # }
//! ```

mod columns;
mod error;
mod stream;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream as streams;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status};

pub use columns::{Candidates, Submissions};
pub use error::ClientError;
pub use stream::EditStream;

use super::grpc::generated as wire;
use super::grpc::generated::slotwise_client::SlotwiseClient;
use super::live::{Changed, Condition};
use super::version::Version;
use crate::cluster::Cluster;
use crate::decide::PlaceOptions;
use crate::formats::{EditSpec, Snapshot, read_cluster_from};
use columns::Numbers;

/// How a service is reached.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// `http://ADDRESS:PORT`, or `https`.
    pub url: String,
    /// The bearer token that the service asks for, if it does.
    pub token: Option<String>,
    /// Who signs the service's certificate, in PEM; needed for `https`.
    pub ca: Option<PathBuf>,
    /// The client's own certificate and its key, in PEM, if the service asks for one.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name that the service's certificate must have, where it is not that of the URL.
    pub server_name: Option<String>,
    /// How long any call but a stream of edits may take; the service is told, too.
    pub timeout: Duration,
}

impl ClientOptions {
    /// Without encryption and without a token; 30 seconds a call.
    pub fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            token: None,
            ca: None,
            identity: None,
            server_name: None,
            timeout: Duration::from_secs(30),
        }
    }

    fn tls(&self) -> Result<Option<ClientTlsConfig>, ClientError> {
        let read = |path: &PathBuf| {
            std::fs::read(path).map_err(|error| ClientError::Options(format!("{}: {error}", path.display())))
        };
        if !self.url.starts_with("https:") {
            return Ok(None);
        }
        let ca = self.ca.as_ref().ok_or_else(|| {
            ClientError::Options(format!("found {} and no ca, expected the certificates of who signs", self.url))
        })?;
        let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(ca)?));
        if let Some(name) = &self.server_name {
            tls = tls.domain_name(name);
        }
        if let Some((certificate, key)) = &self.identity {
            tls = tls.identity(Identity::from_pem(read(certificate)?, read(key)?));
        }
        Ok(Some(tls))
    }
}

/// Shows the token.
#[derive(Clone)]
struct Shown(Option<MetadataValue<Ascii>>);

impl Interceptor for Shown {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

/// A connection to a service. Clones share it.
#[derive(Clone)]
pub struct Client {
    calls: SlotwiseClient<InterceptedService<Channel, Shown>>,
    timeout: Duration,
    /// Of the cluster that is there, once they are known.
    numbers: Option<Arc<Numbers>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// If an option is no good, or there is no way to the service.
    pub async fn connect(options: &ClientOptions) -> Result<Self, ClientError> {
        let mut endpoint = Endpoint::from_shared(options.url.clone())?.connect_timeout(options.timeout);
        if let Some(tls) = options.tls()? {
            endpoint = endpoint.tls_config(tls)?;
        }
        let token = options.token.as_ref().map(|token| {
            let mut value: MetadataValue<Ascii> = format!("Bearer {token}")
                .parse()
                .map_err(|_| ClientError::Options("found a token that no header can hold".to_owned()))?;
            value.set_sensitive(true);
            Ok::<_, ClientError>(value)
        });
        let shown = Shown(token.transpose()?);
        let calls = SlotwiseClient::with_interceptor(endpoint.connect().await?, shown);
        let calls = calls.max_decoding_message_size(usize::MAX).max_encoding_message_size(usize::MAX);
        Ok(Self { calls, timeout: options.timeout, numbers: None })
    }

    fn timed<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.timeout);
        request
    }

    /// Puts a cluster in place of what is there.
    ///
    /// # Errors
    /// What the service says.
    pub async fn put(&mut self, cluster: &Cluster) -> Result<Version, ClientError> {
        let pieces = streams::iter(columns::pieces(cluster));
        let answer = self.calls.put_cluster(self.timed(pieces)).await?.into_inner();
        let named = cluster.node_ids().map(|node| (cluster.node_name(node).to_owned(), node.0));
        self.numbers = Some(Arc::new(named.collect()));
        parse(&answer.version)
    }

    /// The cluster that is there, and its version.
    ///
    /// # Errors
    /// What the service says.
    pub async fn cluster(&mut self) -> Result<(Version, Snapshot), ClientError> {
        let mut pieces = self.calls.get_cluster(self.timed(wire::GetClusterRequest {})).await?.into_inner();
        let (mut version, mut json) = (String::new(), Vec::new());
        while let Some(piece) = pieces.message().await? {
            version.push_str(&piece.version);
            json.extend_from_slice(&piece.json);
        }
        let snapshot = read_cluster_from("the service's cluster", &json[..]);
        Ok((parse(&version)?, snapshot.map_err(|error| ClientError::Input(error.to_string()))?))
    }

    /// The version of the cluster that is there.
    ///
    /// # Errors
    /// What the service says.
    pub async fn version(&mut self) -> Result<Version, ClientError> {
        let answer = self.calls.get_version(self.timed(wire::GetVersionRequest {})).await?;
        parse(&answer.into_inner().version)
    }

    /// The names of the nodes by their numbers, and the version that they are of.
    ///
    /// # Errors
    /// What the service says.
    pub async fn nodes(&mut self) -> Result<(Version, Vec<String>), ClientError> {
        let mut pieces = self.calls.list_nodes(self.timed(wire::ListNodesRequest {})).await?.into_inner();
        let (mut version, mut names) = (String::new(), Vec::new());
        while let Some(piece) = pieces.message().await? {
            version.push_str(&piece.version);
            names.extend(piece.name);
        }
        self.numbers = Some(Arc::new(names.iter().cloned().zip(0..).collect()));
        Ok((parse(&version)?, names))
    }

    /// Says what has happened: all of it is done, or nothing.
    ///
    /// # Errors
    /// What the service says; or that a node is none of the cluster.
    pub async fn edit(&mut self, condition: &Condition, edits: &[EditSpec]) -> Result<Changed, ClientError> {
        let limit = self.timeout;
        let done = async {
            let mut stream = self.edits().await?;
            stream.send(condition, edits).await?;
            stream.answer().await
        };
        tokio::time::timeout(limit, done).await.unwrap_or(Err(ClientError::Late))
    }

    /// Opens a stream of edits, on which many can be on their way at once.
    ///
    /// # Errors
    /// What the service says.
    pub async fn edits(&mut self) -> Result<EditStream, ClientError> {
        let numbers = match &self.numbers {
            Some(numbers) => Arc::clone(numbers),
            None => {
                self.nodes().await?;
                self.numbers.clone().unwrap_or_default()
            }
        };
        EditStream::open(self.calls.clone(), numbers).await
    }

    /// Lets go of the numbers of nodes: another client has put another cluster, so they are asked for again.
    pub fn forget_nodes(&mut self) {
        self.numbers = None;
    }

    /// Scores candidates; without a version, on the cluster as it is. One row each, in their order.
    ///
    /// # Errors
    /// What the service says.
    pub async fn score(
        &mut self,
        version: Option<Version>,
        candidates: &Candidates,
    ) -> Result<wire::ScoreResponse, ClientError> {
        let request = wire::ScoreRequest { version: text(version), ..candidates.0.clone() };
        Ok(self.calls.score(self.timed(request)).await?.into_inner())
    }

    /// The same of many batches on one stream, each answered by itself: for more than a message can hold.
    ///
    /// # Errors
    /// What the service says.
    pub async fn score_all(
        &mut self,
        version: Option<Version>,
        batches: Vec<Candidates>,
    ) -> Result<Vec<wire::ScoreResponse>, ClientError> {
        let mut answers = Vec::with_capacity(batches.len());
        let requests = batches.into_iter().map(move |batch| wire::ScoreRequest { version: text(version), ..batch.0 });
        let mut stream = self.calls.score_stream(self.timed(streams::iter(requests))).await?.into_inner();
        while let Some(answer) = stream.message().await? {
            answers.push(answer);
        }
        Ok(answers)
    }

    /// Decides a queue in its order, to see or for good. One row a decision.
    ///
    /// # Errors
    /// What the service says.
    pub async fn place(
        &mut self,
        condition: &Condition,
        queue: Submissions,
        options: &PlaceOptions,
        commit: bool,
    ) -> Result<wire::PlaceResponse, ClientError> {
        let request = wire::PlaceRequest {
            version: text(condition.version),
            id: condition.id.clone().unwrap_or_default(),
            commit,
            policy: options.policy.name().to_owned(),
            compact: options.trigger.name().to_owned(),
            migration_budget: options.migration_budget,
            seed: options.seed,
            ..queue.0
        };
        Ok(self.calls.place(self.timed(request)).await?.into_inner())
    }

    /// The fewest moves that make room: a document of `POST /v1/plan` in JSON, and its answer.
    ///
    /// # Errors
    /// What the service says.
    pub async fn plan(&mut self, question: &str) -> Result<Vec<u8>, ClientError> {
        let request = self.timed(wire::DocumentRequest { json: question.into() });
        Ok(self.calls.plan(request).await?.into_inner().json)
    }

    /// Why a job waits: a document of `POST /v1/explain` in JSON, and its answer.
    ///
    /// # Errors
    /// What the service says.
    pub async fn explain(&mut self, question: &str) -> Result<Vec<u8>, ClientError> {
        let request = self.timed(wire::DocumentRequest { json: question.into() });
        Ok(self.calls.explain(request).await?.into_inner().json)
    }

    /// How fragmented the cluster is: a document of `POST /v1/audit` in JSON, or nothing; and its answer.
    ///
    /// # Errors
    /// What the service says.
    pub async fn audit(&mut self, question: &str) -> Result<Vec<u8>, ClientError> {
        let request = self.timed(wire::DocumentRequest { json: question.into() });
        Ok(self.calls.audit(request).await?.into_inner().json)
    }
}

fn text(version: Option<Version>) -> String {
    version.map(|version| version.to_string()).unwrap_or_default()
}

fn parse(version: &str) -> Result<Version, ClientError> {
    version.parse().map_err(|error| ClientError::Input(format!("found version {version:?} of the service: {error}")))
}
