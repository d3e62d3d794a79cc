//! The calls: decode, ask the thread that owns the cluster, encode.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::{Stream, stream};
use tonic::{Request, Response, Status, Streaming};

use super::generated as wire;
use super::generated::slotwise_server::Slotwise;
use super::guard::Admitted;
use super::{edits, place, put, score};
use crate::cluster::NodeId;
use crate::decide::PlaceOptions;
use crate::serve::aside::{AuditQuestion, ExplainQuestion, PlanQuestion, Question};
use crate::serve::fault::ServeError;
use crate::serve::http::{App, condition, policy_and_trigger};
use crate::serve::live::{PlaceCall, ScoreCall};
use crate::serve::version::Version;

/// Bytes of a document in a message: well below what clients take by default.
const PIECE: usize = 1 << 20;

/// Names of nodes in a message.
const NAMES: usize = 8192;

/// How often a stream on which nothing comes looks whether the service is about to end.
const LOOK: Duration = Duration::from_millis(500);

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The service, as tonic calls it.
#[derive(Debug)]
pub(super) struct Calls(pub(super) Arc<App>);

impl Calls {
    async fn document(
        &self,
        admitted: &Admitted,
        question: impl Question,
    ) -> Result<Response<wire::DocumentResponse>, Status> {
        let json = self.0.answer(admitted.deadline(), question).await?;
        Ok(Response::new(wire::DocumentResponse { json }))
    }
}

#[tonic::async_trait]
impl Slotwise for Calls {
    async fn put_cluster(
        &self,
        request: Request<Streaming<wire::PutClusterRequest>>,
    ) -> Result<Response<wire::PutClusterResponse>, Status> {
        let (app, admitted) = (&self.0, admitted(&request)?);
        app.may_change()?;
        let deadline = admitted.deadline();
        let mut messages = request.into_inner();
        let mut pieces = put::Pieces::default();
        let all = async {
            while let Some(piece) = next(app, &mut messages).await? {
                pieces.push(piece, app.limits.body)?;
            }
            Ok::<_, Status>(())
        };
        match deadline {
            None => all.await?,
            Some(deadline) => {
                tokio::time::timeout_at(deadline.into(), all).await.map_err(|_| ServeError::Late)??;
            }
        }
        let snapshot = app.on_a_snapshot(deadline, move || pieces.finish()).await?;
        let (nodes, gpus) = (snapshot.cluster.nodes().len() as u64, snapshot.cluster.gpus());
        let notes = snapshot.notes.iter().map(|note| note.text.clone()).collect();
        let version = app.engine.run(deadline, move |live| Ok(live.put(snapshot.cluster))).await?;
        Ok(Response::new(wire::PutClusterResponse { version: version.to_string(), nodes, gpus, notes }))
    }

    type GetClusterStream = Answers<wire::GetClusterResponse>;

    async fn get_cluster(
        &self,
        request: Request<wire::GetClusterRequest>,
    ) -> Result<Response<Self::GetClusterStream>, Status> {
        let admitted = admitted(&request)?;
        let (version, bytes) = self.0.written(admitted.deadline()).await?;
        let pieces = stream::unfold((bytes, 0, admitted), move |(bytes, at, admitted)| async move {
            let end = bytes.len().min(at + PIECE);
            let version = if at == 0 { version.to_string() } else { String::new() };
            let json = bytes.get(at..end).filter(|piece| !piece.is_empty())?.to_vec();
            Some((Ok(wire::GetClusterResponse { version, json }), (bytes, end, admitted)))
        });
        Ok(Response::new(Box::pin(pieces)))
    }

    async fn get_version(
        &self,
        request: Request<wire::GetVersionRequest>,
    ) -> Result<Response<wire::GetVersionResponse>, Status> {
        let deadline = admitted(&request)?.deadline();
        let version = self.0.engine.run(deadline, |live| live.check(None).map(|()| live.version())).await?;
        Ok(Response::new(wire::GetVersionResponse { version: version.to_string() }))
    }

    type ListNodesStream = Answers<wire::ListNodesResponse>;

    async fn list_nodes(
        &self,
        request: Request<wire::ListNodesRequest>,
    ) -> Result<Response<Self::ListNodesStream>, Status> {
        let admitted = admitted(&request)?;
        let copy = |live: &mut crate::serve::Live| Ok((live.version(), live.copy()?));
        let (version, cluster) = self.0.engine.run(admitted.deadline(), copy).await?;
        let pieces = stream::unfold((0, admitted), move |(at, admitted)| {
            let cluster = Arc::clone(&cluster);
            async move {
                let (nodes, first) = (cluster.nodes().len(), at == 0);
                // An empty cluster has a version too.
                if at >= nodes && !first {
                    return None;
                }
                let end = nodes.min(at + NAMES);
                let name = (at..end).map(|node| cluster.node_name(NodeId(node as u32)).to_owned()).collect();
                let version = if first { version.to_string() } else { String::new() };
                Some((Ok(wire::ListNodesResponse { version, name }), (end.max(1), admitted)))
            }
        });
        Ok(Response::new(Box::pin(pieces)))
    }

    type ApplyEditsStream = Answers<wire::ApplyEditsResponse>;

    async fn apply_edits(
        &self,
        request: Request<Streaming<wire::ApplyEditsRequest>>,
    ) -> Result<Response<Self::ApplyEditsStream>, Status> {
        self.0.may_change()?;
        let admitted = admitted(&request)?;
        let from = (Arc::clone(&self.0), request.into_inner(), admitted, None::<Version>);
        let answers = stream::try_unfold(from, |(app, mut messages, admitted, last)| async move {
            let Some(message) = next(&app, &mut messages).await? else { return Ok(None) };
            let version = match (message.follows, last) {
                (false, _) => version(&message.version)?,
                (true, Some(_)) if message.version.is_empty() => last,
                (true, Some(_)) => return Err(bad("version: found one beside follows, expected none").into()),
                (true, None) => return Err(bad("follows: found it in the first message, expected a later one").into()),
            };
            let condition = condition(version, Some(message.id.clone()).filter(|id| !id.is_empty()))?;
            let deadline = admitted.deadline();
            let changed = app.engine.run(deadline, move |live| {
                let edits = edits::edits(&message, live.state()?.cluster())?;
                live.edit(&condition, &edits)
            });
            let changed = changed.await?;
            let answer = wire::ApplyEditsResponse { version: changed.version.to_string(), repeated: changed.repeated };
            Ok(Some((answer, (app, messages, admitted, Some(changed.version)))))
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn score(&self, request: Request<wire::ScoreRequest>) -> Result<Response<wire::ScoreResponse>, Status> {
        let admitted = admitted(&request)?;
        Ok(Response::new(score_one(&self.0, &admitted, request.into_inner()).await?))
    }

    type ScoreStreamStream = Answers<wire::ScoreResponse>;

    async fn score_stream(
        &self,
        request: Request<Streaming<wire::ScoreRequest>>,
    ) -> Result<Response<Self::ScoreStreamStream>, Status> {
        let admitted = admitted(&request)?;
        let from = (Arc::clone(&self.0), request.into_inner(), admitted);
        let answers = stream::try_unfold(from, |(app, mut messages, admitted)| async move {
            let Some(message) = next(&app, &mut messages).await? else { return Ok(None) };
            let answer = score_one(&app, &admitted, message).await?;
            Ok(Some((answer, (app, messages, admitted))))
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn place(&self, request: Request<wire::PlaceRequest>) -> Result<Response<wire::PlaceResponse>, Status> {
        let deadline = admitted(&request)?.deadline();
        let message = request.into_inner();
        if message.commit {
            self.0.may_change()?;
        }
        let word = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let (policy, trigger) =
            policy_and_trigger(word(&message.policy).as_deref(), word(&message.compact).as_deref())?;
        let (migration_budget, seed) = (message.migration_budget, message.seed);
        let options = PlaceOptions { policy, trigger, migration_budget, seed, threads: 1, ..PlaceOptions::default() };
        let condition = condition(version(&message.version)?, word(&message.id))?;
        let call = PlaceCall { condition, options, commit: message.commit };
        let placed = self.0.engine.run(deadline, move |live| {
            let changed = live.place(&call, |cluster| place::queue(&message, cluster), &mut place::append)?;
            if changed.repeated { place::repeated(&changed, live.state()?.cluster()) } else { place::answer(&changed) }
        });
        Ok(Response::new(placed.await?))
    }

    async fn plan(&self, request: Request<wire::DocumentRequest>) -> Result<Response<wire::DocumentResponse>, Status> {
        let question = PlanQuestion::read(&request.get_ref().json)?;
        self.document(&admitted(&request)?, question).await
    }

    async fn explain(
        &self,
        request: Request<wire::DocumentRequest>,
    ) -> Result<Response<wire::DocumentResponse>, Status> {
        let question = ExplainQuestion::read(&request.get_ref().json)?;
        self.document(&admitted(&request)?, question).await
    }

    async fn audit(&self, request: Request<wire::DocumentRequest>) -> Result<Response<wire::DocumentResponse>, Status> {
        let question = AuditQuestion::read(&request.get_ref().json)?;
        self.document(&admitted(&request)?, question).await
    }
}

async fn score_one(app: &App, admitted: &Admitted, message: wire::ScoreRequest) -> Result<wire::ScoreResponse, Status> {
    let version = version(&message.version)?;
    let candidates = Box::new(move |cluster: &mut _| score::candidates(&message, cluster));
    let scored = app.engine.score(admitted.deadline(), ScoreCall { version, candidates }).await?;
    Ok(score::scores(&scored))
}

/// The next message of a stream, unless the service is about to end.
async fn next<T>(app: &App, messages: &mut Streaming<T>) -> Result<Option<T>, Status> {
    loop {
        if let Ok(message) = tokio::time::timeout(LOOK, messages.message()).await {
            return message;
        }
        if app.closing.load(Ordering::Relaxed) {
            return Err(ServeError::Closing.into());
        }
    }
}

/// What the guard let the call in with.
fn admitted<T>(request: &Request<T>) -> Result<Admitted, Status> {
    let admitted = request.extensions().get::<Admitted>().cloned();
    admitted.ok_or_else(|| ServeError::Failed("a call came around its guard".to_owned()).into())
}

/// A version, unless the text is empty.
fn version(text: &str) -> Result<Option<Version>, ServeError> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|error| bad(&format!("version: found {text:?}, {error}")))
}

fn bad(text: &str) -> ServeError {
    ServeError::Input(text.to_owned())
}
