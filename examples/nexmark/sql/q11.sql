-- SESSION(10 seconds): a bid more than the gap after the one before it begins a session
SELECT bidder, count(*) AS bid_count, min(dateTime) AS starttime,
  max(dateTime) + INTERVAL 10 SECONDS AS endtime
FROM (
  SELECT bidder, dateTime,
    sum(begins) OVER (PARTITION BY bidder ORDER BY dateTime RANGE UNBOUNDED PRECEDING) AS session
  FROM (
    SELECT bidder, dateTime, coalesce(CAST(dateTime - lag(dateTime) OVER (
      PARTITION BY bidder ORDER BY dateTime) > INTERVAL 10 SECONDS AS INTEGER), 0) AS begins
    FROM bid
  )
)
GROUP BY bidder, session
