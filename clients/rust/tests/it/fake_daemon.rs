//! A daemon that a test controls: it has another version, writes invalid output, or does not respond.

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf,
    WriteHalf,
};
use treelined_client::{Client, Error, PROTOCOL_VERSION};

/// The daemon's end of a connection.
pub struct FakeDaemon {
    pub input: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
}

/// The result of `initialize` with this protocol version.
pub fn initialize_result(version: u64) -> Value {
    json!({
        "protocolVersion": version,
        "serverInfo": { "name": "fake", "version": "0" },
        "instanceId": "i",
        "schemaHash": "sha256:0",
        "capabilities": { "summarizer": null },
        "limits": { "maxFrameBytes": 1, "maxAnswerMs": 1, "maxQueuedBytes": 1 },
    })
}

impl FakeDaemon {
    /// Starts a client, whose `initialize` is not answered yet.
    pub fn connecting(
        builder: treelined_client::Builder,
    ) -> (tokio::task::JoinHandle<Result<Client, Error>>, FakeDaemon) {
        let (ours, theirs) = tokio::io::duplex(4096);
        let (input, output) = tokio::io::split(theirs);
        let client = tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(ours);
            builder.attach(reader, writer).await
        });
        let input = BufReader::new(input).lines();
        (client, FakeDaemon { input, output })
    }

    /// Starts a client and answers its `initialize`.
    pub async fn connect(builder: treelined_client::Builder) -> (Client, FakeDaemon) {
        let (client, mut daemon) = FakeDaemon::connecting(builder);
        let request = daemon.receive().await;
        assert_eq!(request["method"], "initialize");
        daemon
            .answer(&request, initialize_result(PROTOCOL_VERSION))
            .await;
        (client.await.unwrap().unwrap(), daemon)
    }

    /// Returns the client's next message.
    pub async fn receive(&mut self) -> Value {
        let line = crate::fixture::soon(self.input.next_line()).await;
        serde_json::from_str(&line.unwrap().expect("a message")).unwrap()
    }

    pub async fn send(&mut self, line: &str) {
        self.output.write_all(line.as_bytes()).await.unwrap();
        self.output.write_all(b"\n").await.unwrap();
    }

    pub async fn answer(&mut self, request: &Value, result: Value) {
        let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        self.send(&answer.to_string()).await;
    }

    /// Closes the output, and reads until the client closes its own.
    pub async fn close_output(mut self) {
        self.output.shutdown().await.unwrap();
        let mut rest = Vec::new();
        let _ = self.input.get_mut().read_to_end(&mut rest).await;
    }
}
