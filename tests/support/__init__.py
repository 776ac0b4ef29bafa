"""What the tests share: servers, worlds, races, runners of sqitch and pg_prove."""
