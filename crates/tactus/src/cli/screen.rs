//! Arguments of those who watch a run.

use std::net::SocketAddr;

use clap::Args;

/// How a run is watched.
#[derive(Debug, Default, Args)]
pub struct Screen {
    /// Lines instead of the live screen, which a terminal has otherwise
    #[arg(long)]
    pub plain: bool,
    /// Serve metrics meanwhile (OpenMetrics, GET /metrics), as on :9464: without an address on this machine alone
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = tactus_watch::http::address)]
    pub metrics: Option<SocketAddr>,
}
