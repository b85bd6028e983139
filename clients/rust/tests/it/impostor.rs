//! Stands for daemons that do not exist: of another version, that say strange things, that never answer.

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf,
    WriteHalf,
};
use treelined_client::{Client, Error, PROTOCOL_VERSION};

/// The other end of a client.
pub struct Impostor {
    pub heard: Lines<BufReader<ReadHalf<DuplexStream>>>,
    says: WriteHalf<DuplexStream>,
}

/// A result of `initialize`.
pub fn introduction(version: u64) -> Value {
    json!({
        "protocolVersion": version,
        "serverInfo": { "name": "impostor", "version": "0" },
        "instanceId": "i",
        "schemaHash": "sha256:0",
        "capabilities": { "summarizer": null },
        "limits": { "maxFrameBytes": 1, "maxAnswerMs": 1, "maxQueuedBytes": 1 },
    })
}

impl Impostor {
    /// A client that is being introduced, and whom to.
    pub fn meet(
        builder: treelined_client::Builder,
    ) -> (tokio::task::JoinHandle<Result<Client, Error>>, Impostor) {
        let (ours, theirs) = tokio::io::duplex(4096);
        let (heard, says) = tokio::io::split(theirs);
        let client = tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(ours);
            builder.attach(reader, writer).await
        });
        let heard = BufReader::new(heard).lines();
        (client, Impostor { heard, says })
    }

    /// A client that takes it for a daemon.
    pub async fn deceive(builder: treelined_client::Builder) -> (Client, Impostor) {
        let (client, mut impostor) = Impostor::meet(builder);
        let asked = impostor.hear().await;
        assert_eq!(asked["method"], "initialize");
        impostor
            .answer(&asked, introduction(PROTOCOL_VERSION))
            .await;
        (client.await.unwrap().unwrap(), impostor)
    }

    /// The next message of the client.
    pub async fn hear(&mut self) -> Value {
        let line = crate::fixture::soon(self.heard.next_line()).await;
        serde_json::from_str(&line.unwrap().expect("a message")).unwrap()
    }

    pub async fn say(&mut self, line: &str) {
        self.says.write_all(line.as_bytes()).await.unwrap();
        self.says.write_all(b"\n").await.unwrap();
    }

    pub async fn answer(&mut self, asked: &Value, result: Value) {
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
        self.say(&answer.to_string()).await;
    }

    /// Ends what it says, and listens until the client has nothing more to say.
    pub async fn fall_silent(mut self) {
        self.says.shutdown().await.unwrap();
        let mut rest = Vec::new();
        let _ = self.heard.get_mut().read_to_end(&mut rest).await;
    }
}
