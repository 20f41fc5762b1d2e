SELECT b.auction, b.price, b.bidder, b.dateTime, b.extra
FROM bid b JOIN (
  SELECT max(price) AS maxprice,
    time_bucket(INTERVAL 10 SECONDS, dateTime) + INTERVAL 10 SECONDS AS window_end
  FROM bid GROUP BY window_end
) w
ON b.price = w.maxprice
  AND b.dateTime BETWEEN w.window_end - INTERVAL 10 SECONDS AND w.window_end
