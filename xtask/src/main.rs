mod generate;

fn main() -> anyhow::Result<()> {
    generate::run(std::env::args().any(|argument| argument == "--check"))
}
