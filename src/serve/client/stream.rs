//! Edits, one after another, without waiting for each answer.

use std::sync::Arc;

use futures_util::stream;
use tokio::sync::mpsc;
use tonic::Streaming;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

use super::columns::{self, Numbers};
use super::{ClientError, Shown, parse, text};
use crate::formats::EditSpec;
use crate::serve::grpc::generated as wire;
use crate::serve::grpc::generated::slotwise_client::SlotwiseClient;
use crate::serve::live::{Changed, Condition};

/// How many changes may be on their way before sending waits.
const ON_THE_WAY: usize = 1024;

/// A stream of edits. Each change is answered, in order; the first that fails ends the stream, and none after it is done.
/// Whoever sends many reads answers in between: sending waits while too many are on their way.
#[derive(Debug)]
pub struct EditStream {
    messages: mpsc::Sender<wire::ApplyEditsRequest>,
    answers: Streaming<wire::ApplyEditsResponse>,
    numbers: Arc<Numbers>,
}

impl EditStream {
    pub(super) async fn open(
        mut calls: SlotwiseClient<InterceptedService<Channel, Shown>>,
        numbers: Arc<Numbers>,
    ) -> Result<Self, ClientError> {
        let (messages, waiting) = mpsc::channel(ON_THE_WAY);
        let outgoing = stream::unfold(waiting, |mut waiting: mpsc::Receiver<_>| async move {
            let message = waiting.recv().await?;
            Some((message, waiting))
        });
        let answers = calls.apply_edits(outgoing).await?.into_inner();
        Ok(Self { messages, answers, numbers })
    }

    /// Sends a change.
    ///
    /// # Errors
    /// If a node is none of the cluster, or the stream has ended: [`EditStream::answer`] says why.
    pub async fn send(&self, condition: &Condition, edits: &[EditSpec]) -> Result<(), ClientError> {
        self.push(condition, edits, false).await
    }

    /// Sends a change that is for the version that the one before makes, so that no other client can come between. It has
    /// no version of its own, and is not the first of its stream.
    ///
    /// # Errors
    /// As for [`EditStream::send`].
    pub async fn send_next(&self, id: Option<String>, edits: &[EditSpec]) -> Result<(), ClientError> {
        self.push(&Condition { version: None, id }, edits, true).await
    }

    async fn push(&self, condition: &Condition, edits: &[EditSpec], follows: bool) -> Result<(), ClientError> {
        let message = wire::ApplyEditsRequest {
            version: text(condition.version),
            id: condition.id.clone().unwrap_or_default(),
            follows,
            ..columns::edits(edits, &self.numbers)?
        };
        self.messages.send(message).await.map_err(|_| ClientError::Closing)
    }

    /// The answer to the first change that has none yet.
    ///
    /// # Errors
    /// Why it was not done; the stream has ended then.
    pub async fn answer(&mut self) -> Result<Changed, ClientError> {
        let answer = self.answers.message().await?.ok_or(ClientError::Closing)?;
        Ok(Changed { repeated: answer.repeated, ..Changed::new(parse(&answer.version)?) })
    }
}
