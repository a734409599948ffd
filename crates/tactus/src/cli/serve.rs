//! Arguments of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// Directory that bundles lie in. Default: this one
    pub dir: Option<PathBuf>,
    /// Where to listen; without an address on this machine alone, with port 0 on one that is free. Elsewhere than on
    /// loopback a token is needed, which is drawn and printed
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:9465",
        value_parser = tactus_watch::http::address
    )]
    pub listen: SocketAddr,
    /// Ask for the token in this file, on loopback too: 22 letters and digits or more, in a file that no other user reads
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}
