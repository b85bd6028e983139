//! The round trip of a call over the socket of a shared daemon and through `treelined connect`, beside stdio.
//!
//! The rows of plain servers show how much of the difference comes from the kernel.

use super::call::CALLS;
use crate::daemon::{self, Daemon, StartOptions};
use crate::shared::{SharedDaemon, Waiting};
use crate::table::{Row, Table, Target, Unit, median};
use crate::world::World;
use crate::{Bench, machine, web_socket};
use anyhow::Result;

const HOW: StartOptions = StartOptions {
    durability: "os",
    pinned: true,
    index_from: None,
};

/// The session of the calls. A shared daemon has no working directory for it.
const SESSION: &str = "{\"ephemeral\":true,\"cwd\":\"/\"}";

/// The medians of the rounds, in seconds.
#[derive(Default)]
struct RoundTrips {
    stdio: Vec<f64>,
    polling: Vec<f64>,
    blocked: Vec<f64>,
    page: Vec<f64>,
    connect: Vec<f64>,
    bare_pipe: Vec<f64>,
    bare_polling: Vec<f64>,
    bare_blocked: Vec<f64>,
}

pub fn round_trip(bench: &Bench, table: &mut Table) -> Result<()> {
    let mut trips = RoundTrips::default();
    daemon::pinned(|| (0..bench.rounds).try_for_each(|_| trips.measure(bench)))?;
    let row = |what: &str, ours| Row::new(format!("{what}, one core"), Unit::Seconds, ours);
    let stdio = || trips.stdio.clone();
    table.push(
        row("trivial call over the socket", trips.polling)
            .limit("over stdio", stdio())
            .target(Target::OfLimit(1.3, 0.0)),
    );
    table.push(
        row("the same by a client that blocks in recv", trips.blocked).limit("over stdio", stdio()),
    );
    table.push(row("trivial call over the WebSocket", trips.page).limit("over stdio", stdio()));
    table.push(row("trivial call through connect", trips.connect).limit("over stdio", stdio()));
    let pipe = || trips.bare_pipe.clone();
    let bare = "bare line server over a socket";
    table.push(row(bare, trips.bare_polling).limit("over a pipe", pipe()));
    let blocked = format!("{bare}, client that blocks in recv");
    table.push(row(&blocked, trips.bare_blocked).limit("over a pipe", pipe()));
    Ok(())
}

impl RoundTrips {
    /// Measures each kind of connection once.
    fn measure(&mut self, bench: &Bench) -> Result<()> {
        let world = World::new(bench)?;
        let mut own = Daemon::start_as(bench, &world, HOW)?;
        self.stdio.extend(median(&calls(&mut own)?));
        drop(own);
        let shared = SharedDaemon::start(bench, &world, HOW)?;
        let calls_of = |waiting| socket_calls(&shared, waiting);
        self.polling.extend(median(&calls_of(Waiting::Polling)?));
        self.blocked.extend(median(&calls_of(Waiting::Blocked)?));
        let page = web_socket::calls(&shared.runtime_file(), SESSION, CALLS)?;
        self.page.extend(median(&page));
        let mut command = daemon::command(bench, &world, HOW);
        command.args(["connect", "--socket"]).arg(&shared.socket);
        let through = calls(&mut Daemon::spawned(command)?)?;
        self.connect.extend(median(&through));
        drop(shared);
        self.bare_pipe.extend(median(&machine::round_trips(CALLS)?));
        let bare = |waiting| machine::socket_round_trips(CALLS, waiting);
        self.bare_polling.extend(median(&bare(Waiting::Polling)?));
        self.bare_blocked.extend(median(&bare(Waiting::Blocked)?));
        Ok(())
    }
}

fn calls(daemon: &mut Daemon) -> Result<Vec<f64>> {
    daemon.call("create_session", SESSION)?;
    (0..CALLS).map(|_| daemon.timed("get_leaf", "{}")).collect()
}

/// The times of the calls of a client that has connected by itself.
fn socket_calls(shared: &SharedDaemon, waiting: Waiting) -> Result<Vec<f64>> {
    let mut client = shared.connect(waiting)?;
    client.timed("create_session", SESSION)?;
    (0..CALLS).map(|_| client.timed("get_leaf", "{}")).collect()
}
