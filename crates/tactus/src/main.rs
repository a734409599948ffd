//! wip
fn main(){}
