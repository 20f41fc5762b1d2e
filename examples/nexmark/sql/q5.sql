-- HOP(10 seconds, every 2): a bid is in the five windows that end after it
WITH counts AS (
  SELECT auction, window_end, count(*) AS num
  FROM (
    SELECT auction,
      time_bucket(INTERVAL 2 SECONDS, dateTime) + (n + 1) * INTERVAL 2 SECONDS AS window_end
    FROM bid CROSS JOIN range(5) AS hops(n)
  )
  GROUP BY auction, window_end
)
SELECT auction, num FROM counts
QUALIFY num = max(num) OVER (PARTITION BY window_end)
