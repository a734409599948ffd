//! Arguments of those who watch a run.

use std::net::SocketAddr;

use clap::Args;

/// How a run is watched.
#[derive(Debug, Default, Args)]
pub struct Screen {
    /// Print lines instead of the live screen, which is the default in a terminal
    #[arg(long)]
    pub plain: bool,
    /// Serve metrics while measuring (OpenMetrics, GET /metrics), as on :9464: without an address only on
    /// this machine
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = tactus_watch::http::address)]
    pub metrics: Option<SocketAddr>,
}
